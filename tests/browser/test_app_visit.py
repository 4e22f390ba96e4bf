"""A whole visit to the app in a real browser: drop, change a column, measure, cancel, measure again, take the PDF home.

With CALIBRARY_SCREENSHOTS=folder every step leaves a picture there: wide, narrow and dark.
"""

from __future__ import annotations

import http.client
import itertools
import json
import os
import shutil
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from app_visitor import Visitor, table

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
PICTURES = os.environ.get("CALIBRARY_SCREENSHOTS")

#: Files, each with its name, that arrive as those that are dropped do.
DROP = """
const files = new DataTransfer();
for (const [name, text] of arguments) files.items.add(new File([text], name));
document.dispatchEvent(new DragEvent("drop", {dataTransfer: files, bubbles: true, cancelable: true}));
"""


def sized(driver, width, height, dark=False):
    """Make the page so large; headless windows have a least width."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme})


def pictured(driver, step):
    if PICTURES:
        sizes = {"wide": (1280, 1000), "narrow": (390, 844)}
        for (name, size), dark in itertools.product(sizes.items(), ("", "-dark")):
            sized(driver, *size, dark=bool(dark))
            assert driver.execute_script("return document.documentElement.scrollWidth <= innerWidth"), (step, name)
            time.sleep(1)  # a frame is laid out by a process of its own
            driver.save_screenshot(f"{PICTURES}/{step}-{name}{dark}.png")
        sized(driver, 1280, 1000)


@pytest.fixture
def visited(driver):
    """The page of an app, whose downloads go to a folder; its log must hold no error afterwards."""
    with tempfile.TemporaryDirectory(prefix="cal") as folder:  # a short name: Chromium's sockets lie in it
        app = Visitor(Path(folder))
        try:
            driver.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": folder})
            driver.get_log("browser")
            driver.get_log("performance")
            sized(driver, 1280, 1000)
            driver.get(app.url)
            yield app, Path(folder)
            assert [entry for entry in driver.get_log("browser") if entry["level"] == "SEVERE"] == []
            asked = [e["message"] for e in driver.get_log("performance") if "Network.requestWillBeSent" in e["message"]]
            assert [m for m in asked if '"url":"http' in m and f'"url":"http://127.0.0.1:{app.port}/' not in m] == []
        finally:
            driver.get("about:blank")
            app.stop()
        assert app.private == []


def seen_by(driver):
    """What a visitor does: find something, wait until it is shown, choose a value."""

    def find(css):
        return driver.find_element("css selector", css)

    def shown(css):
        return Visitor.until(lambda: (found := find(css)).is_displayed() and found)

    def chosen(css, text):
        script = "const [s, v] = arguments; s.value = v; s.dispatchEvent(new Event('change', {bubbles: true}));"
        driver.execute_script(script, find(css), text)
        return find(css).get_property("value")

    return find, shown, chosen


def test_two_files_are_compared_and_two_reports_stand_side_by_side(driver, visited):
    find, shown, chosen = seen_by(driver)
    other = table().replace(b"risk,second", b"other,risk")
    driver.execute_script(DROP, ["first.csv", table().decode()], ["second.csv", other.decode()])
    shown("#measure")
    assert find("#notes").text == "2 files: one model in each, on the same rows"
    assert find("#rows").text.startswith("first.csv: 200 rows, 6 columns.")
    assert [chosen(f"#{id}", "(none)") for id in ("by", "unit", "time")] == ["(none)"] * 3
    driver.execute_script("document.querySelector('#resamples').value = 0")
    find("#measure").click()
    shown("#page")
    first, second = find("#headline").text.split("\n")  # each model has its own answer
    assert first.startswith("first.csv: The expected calibration error is 0.083.")
    assert second.startswith("second.csv: The expected calibration error is 0.1")
    driver.switch_to.frame(find("#page"))
    compared = Visitor.until(lambda: [row.text for row in driver.find_elements("css selector", "table tbody tr")])
    assert compared[0].startswith("first.csv")
    assert compared[1].startswith("second.csv")
    driver.switch_to.default_content()

    find("#files li:last-child button").click()
    Visitor.until(lambda: find("#notes").text == "")
    find("#measure").click()
    Visitor.until(lambda: len(driver.find_elements("css selector", "#runs input")) == 2)
    assert not find("#beside").is_displayed()
    for tick in driver.find_elements("css selector", "#runs input"):
        tick.click()
    shown("#beside").click()
    assert [name.text for name in driver.find_elements("css selector", "#pair figcaption")] == [
        "first.csv", "first.csv, second.csv"
    ]  # fmt: skip
    for frame, title in zip(driver.find_elements("css selector", "#pair iframe"), ("first", "2 models"), strict=True):
        driver.switch_to.frame(frame)
        Visitor.until(lambda title=title: title in driver.find_element("css selector", "h1").text)
        driver.switch_to.default_content()
    pictured(driver, "5-pair")


def test_a_whole_visit(driver, visited):
    app, folder = visited
    find, shown, chosen = seen_by(driver)
    assert driver.execute_script("return location.search + location.hash") == ""  # no address has the token
    assert driver.execute_script("return document.cookie") == ""
    assert find("#file").get_attribute("type") == "file"
    pictured(driver, "1-empty")

    driver.execute_script(DROP, ["predictions.csv", table().decode()])
    shown("#measure")
    assert [find(f"#{id}").get_property("value") for id in ("label", "prob", "by", "unit", "time")] == [
        "outcome", "risk", "site", "patient", "day"
    ]  # fmt: skip
    pictured(driver, "2-preview")

    assert chosen("#prob", "second") == "second"
    for id in ("by", "unit", "time"):
        assert chosen(f"#{id}", "(none)") == "(none)"
    used = [cell.text.split("\n")[0] for cell in driver.find_elements("css selector", "th.used")]
    assert used == ["second", "outcome"]

    driver.execute_script("document.querySelector('#resamples').value = 9999")
    find("#measure").click()
    shown("#progress")
    Visitor.until(lambda: "left" in find("#left").text)
    pictured(driver, "3-progress")
    find("#cancel").click()
    Visitor.until(lambda: find("#trouble").text.startswith("The report was cancelled"))
    assert not find("#progress").is_displayed()

    driver.execute_script("document.querySelector('#resamples').value = 20")
    find("#measure").click()
    shown("#answer")
    shown("#page")
    assert "--prob second" in find("#command").get_property("textContent")
    headline = find("#headline").text
    driver.switch_to.frame(find("#page"))
    strong = Visitor.until(lambda: driver.find_elements("css selector", ".headline strong"))[0]
    assert headline.startswith(strong.text[:20])
    assert driver.execute_script("return origin") == "null"  # its script can ask the app for nothing
    slider = Visitor.until(lambda: driver.find_elements("css selector", "input[type=range]"))[0]
    before = driver.find_element("css selector", "main").text
    slide = "const [s] = arguments; s.value = 5; s.dispatchEvent(new Event('input', {bubbles: true}));"
    driver.execute_script(slide, slider)
    Visitor.until(lambda: driver.find_element("css selector", "main").text != before)  # the numbers follow
    sized(driver, 390, 844)  # a report in a narrow frame is as narrow as the frame
    Visitor.until(lambda: driver.execute_script("return innerWidth < 390"))
    assert driver.execute_script("return document.documentElement.scrollWidth <= innerWidth")
    sized(driver, 1280, 1000)
    driver.switch_to.default_content()
    driver.execute_script("document.querySelector('#answer').scrollIntoView()")
    pictured(driver, "4-answer")

    if any(map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))):
        find("#downloads [data-form=pdf]").click()
        pdf = Visitor.until(lambda: [path for path in folder.glob("*.pdf") if path.stat().st_size])
        assert pdf[0].read_bytes()[:5] == b"%PDF-"
        assert not find("#download-trouble").is_displayed()
    assert [row.text.split("\n")[0] for row in driver.find_elements("css selector", "#runs b")] == [
        "predictions.csv"
    ] * 2

    driver.get(f"http://127.0.0.1:{app.port}/")  # the tab is loaded again: it has kept the token
    Visitor.until(lambda: find("#headline").text == headline)
    assert find("#files b").text == "predictions.csv"


#: Headers without a usual name of a label or a probability, and everything that a hand-made file may hold.
GUESSED = "case,default,pd_12m,branch\n" + "".join(
    f"c{i},{int(i % 7 < i // 20)},{0.05 + i / 160:.4f},{'north' if i % 3 else 'south'}\n" for i in range(120)
)
MESSY = "case,diagnosis,model_risk\n1,healthy,0.1\n2,sick,0.8\n3,unknown,0.3\n4,healthy,\n5,sick,n.d.\n6,healthy,1.2\n"
MESSY += "".join(f"{i},{'sick' if i % 2 else 'healthy'},{0.2 + (i % 7) / 10:.2f}\n" for i in range(7, 60))


def test_columns_are_guessed_by_what_they_hold_and_problems_come_at_once(driver, visited):
    find, shown, chosen = seen_by(driver)
    driver.execute_script(DROP, ["risks.csv", GUESSED])
    shown("#measure")
    assert [find(f"#{id}").get_property("value") for id in ("label", "prob")] == ["default", "pd_12m"]
    assert "label column guessed: default (its name and its values fit)" in find("#notes").text
    heads = [cell.text.split("\n") for cell in driver.find_elements("css selector", "#table th")]
    assert heads[1] == ["default", "label", "2 distinct"]
    assert heads[2] == ["pd_12m", "probability", "120 distinct"]
    assert find("#measure").is_enabled()
    assert chosen("#prob", "(none)") == "(none)"
    assert not find("#measure").is_enabled()  # nothing is chosen, and the page says what is left to choose
    assert "Choose the probability column." in find("#notes").text
    assert chosen("#prob", "pd_12m") == "pd_12m"
    assert find("#measure").is_enabled()
    pictured(driver, "6-guessed")

    find("#files li:last-child button").click()
    Visitor.until(lambda: not find("#preview").is_displayed())
    driver.execute_script(DROP, ["messy.csv", MESSY])
    shown("#measure")
    heads = [cell.text.split("\n") for cell in driver.find_elements("css selector", "#table th")]
    assert heads[2][-1] == "12 distinct, 1 missing"
    assert [chosen("#label", "diagnosis"), chosen("#prob", "model_risk")] == ["diagnosis", "model_risk"]
    find("#measure").click()
    told = shown("#trouble").text
    assert "messy.csv has 4 problems" in told
    assert len(told.split("\n")) == 6
    assert "the box Leave out missing values" in told
    assert "the field Labels to leave out unknown" in told
    pictured(driver, "7-problems")

    driver.execute_script("document.querySelector('#choices details').open = true")
    find("#drop_label").send_keys("unknown")
    driver.execute_script("arguments[0].click()", find("#drop_invalid"))  # the bar with Measure may lie over it
    chosen("#positive", "sick")
    driver.execute_script("document.querySelector('#resamples').value = 0")
    find("#measure").click()
    shown("#page")
    assert "--drop-label unknown" in find("#command").get_property("textContent")
    pictured(driver, "8-solved")


# -- another user's server on another port of this machine --------------------------------------------

#: What the page of an attacker tries; it sends home whatever it could read.
ATTACK = Path(__file__).with_name("other_port.html").read_text()


@pytest.fixture
def attacker():
    """A server on another port: it sends the page of the attack and writes down every request."""
    heard, home = [], []

    class Answer(BaseHTTPRequestHandler):
        page = b""

        def do_GET(self):
            heard.append(f"{self.path}\n{self.headers}")
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(self.page)

        def do_POST(self):
            heard.append(f"{self.path}\n{self.headers}")
            home.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            """Keep silent."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_address[1], Answer, heard, home
    server.shutdown()
    server.server_close()


def test_a_server_on_another_port_gets_nothing_from_either_browser(driver, second_driver, attacker):
    port, page, heard, home = attacker
    with tempfile.TemporaryDirectory(prefix="cal") as folder:
        app = Visitor(Path(folder)).enter()
        try:
            run = app.ended(app.measure(app.drop("secret.csv", table()), label="outcome", prob=["risk"]))
            page.page = (
                ATTACK.replace("PORT", str(app.port)).replace("RUN", run["id"]).encode()
            )  # even if the attacker knew the report's id
            second_driver.get(f"http://127.0.0.1:{app.port}/")  # without the token the page explains how to enter
            Visitor.until(lambda: "#token=" in second_driver.find_element("css selector", "main").text)
            for browser in (driver, second_driver):
                browser.get(app.url)
                names = Visitor.until(lambda browser=browser: browser.find_elements("css selector", "#files b"))
                assert [name.text for name in names] == ["secret.csv"]
                assert browser.execute_script("return [location.hash, document.cookie].join()") == ","
                home.clear()
                app_tab = browser.current_window_handle
                browser.execute_script(f"open('http://127.0.0.1:{port}/')")  # the victim follows a link
                got = dict(Visitor.until(lambda: home and home[0]))
                assert len(got) == 22
                for name, value in got.items():
                    assert value.startswith(("refused: ", "opaque ")) or value in ("", "null", "sent"), (name, value)
                assert got["get /files"] == "refused: TypeError"
                assert got["blind /files"] == "refused: TypeError"
                assert got["own storage"] == "null"
                for handle in browser.window_handles:
                    browser.switch_to.window(handle)
                    if handle != app_tab:
                        browser.close()
                browser.switch_to.window(app_tab)
            assert heard
            assert not any(
                app.key in request or run["id"] in request.replace(page.page.decode(), "") for request in heard
            )
            assert not any("cookie" in request.lower() for request in heard)
            listed = json.loads(app.ask("GET", "/files")[1])["files"]
            assert [file["name"] for file in listed] == ["secret.csv"]  # the attacker added nothing
            assert len(json.loads(app.ask("GET", "/runs")[1])["runs"]) == 1
            for request in heard:  # and what the browsers sent to the attacker opens nothing
                headers = dict(line.split(": ", 1) for line in request.split("\n")[1:] if ": " in line)
                line = http.client.HTTPConnection("127.0.0.1", app.port, timeout=60)
                line.request("GET", "/files", headers={**headers, "Host": app.host})
                assert line.getresponse().status == 403
        finally:
            driver.get("about:blank")
            driver.get_log("browser")
            app.stop()
