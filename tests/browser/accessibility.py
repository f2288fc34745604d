"""Accessibility of a page, by the rules of axe-core."""

from __future__ import annotations

from importlib.resources import files

from playwright.sync_api import Page

_AXE = (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")
_RUN = """
async () => (await axe.run(document, {
  runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"],
  resultTypes: ["violations"],
})).violations
  .filter((rule) => rule.impact === "serious" || rule.impact === "critical")
  .map((rule) => [rule.id, rule.help, ...rule.nodes.slice(0, 3).map((node) => node.html + " " + node.failureSummary)])
  .map((words) => words.join(" | "))
"""


def find_violations(page: Page) -> list[str]:
    """The serious and critical findings on the page as it is shown now."""
    if not page.evaluate("typeof axe === 'object'"):
        page.evaluate(_AXE)
    found: list[str] = page.evaluate(_RUN)
    return found
