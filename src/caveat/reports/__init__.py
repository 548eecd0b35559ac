"""A report on predictions: one HTML page for the person who decides."""

from caveat.reports.making import report
from caveat.reports.tables import report_table
from caveat.reports.view import HTMLReport

__all__ = ["report", "report_table", "HTMLReport"]
