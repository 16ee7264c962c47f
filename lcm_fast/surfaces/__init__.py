"""What people and programs see of an engine: status, doctor, the command line."""

from .doctor import DoctorReport, doctor
from .status import Status, status

__all__ = ["DoctorReport", "Status", "doctor", "status"]
