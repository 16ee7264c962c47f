"""Large payloads of a message: what they are, and the text that stands for each in a prompt.

Pure: the same message and threshold give the same ids and the same texts, so that an assembly can
render from the record again. Writes no file; that is `lcm_fast.store.payload_files`' part (spec:
storage 2.9; design: architecture, section 4).
"""

from .payload import Payload
from .references import reference_id, reference_ids
from .shown import ShownForm, shown_form
from .stubs import stub_form

__all__ = ["Payload", "ShownForm", "reference_id", "reference_ids", "shown_form", "stub_form"]
