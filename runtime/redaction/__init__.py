"""What must not be trained on: personal data and secrets, found by patterns and replaced by placeholders.

Recognisers come from well-kept libraries (the extra `redact`): detect-secrets knows keys and tokens, phonenumbers
telephone numbers, python-stdnum cards, accounts and national numbers, email-validator addresses. What is written here
only finds candidates for them and puts the pieces together.

Names of people, postal addresses and dates of birth have no pattern: finding them needs a language model, and they are
out of reach without one.
"""

from curatec.runtime.redaction.finder import Finder, RecogniserFailed
from curatec.runtime.redaction.finding import Finding
from curatec.runtime.redaction.trajectory import Redacted, Text, redact

__all__ = ["Finder", "Finding", "RecogniserFailed", "Redacted", "Text", "redact"]
