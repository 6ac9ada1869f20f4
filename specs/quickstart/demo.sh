#!/bin/sh
# Compiles the quickstart and asks two questions about the result. Run by `make demo`.
set -eu
cd "$(dirname "$0")/../.."
out=out/quickstart
echo '$ curatec compile specs/quickstart/service.curate -o' "$out"
curatec compile specs/quickstart/service.curate -o "$out"
echo
echo '$ curatec why' "$out" '--label once --sample 1'
curatec why "$out" --label once --sample 1
echo
echo '$ curatec why' "$out" '--label winners --sample 1'
curatec why "$out" --label winners --sample 1
