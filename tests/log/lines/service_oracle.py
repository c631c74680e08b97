"""What the lines of certain services mean, as slow and plain as can be: cut from left to right."""

from __future__ import annotations

import string
from typing import Any

from log.lines.format_oracle import level_in, pairs_in, scalar, text_of, with_body

_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
_CAPITALS = set(string.ascii_uppercase)


class Cut:
    """A line, from which parts are taken one behind the other. Raises ValueError where one is not as it must be."""

    def __init__(self, line: str) -> None:
        self.rest = line

    def upto(self, mark: str, *, most: str = "", least: int = 1) -> str:
        """What stands before the mark, which is taken, too; without characters of `most`."""
        part, found, rest = self.rest.partition(mark)
        if not found or len(part) < least or any(char in part for char in most):
            raise ValueError(self.rest)
        self.rest = rest
        return part

    def word(self) -> str:
        """What stands before a blank."""
        return self.upto(" ")

    def last(self) -> str:
        """What stands up to a blank, or to the end; the blank stays."""
        part, _, _ = self.rest.partition(" ")
        must(part != "")
        self.rest = self.rest[len(part) :]
        return part

    def skip(self, text: str) -> None:
        must(self.rest.startswith(text))
        self.rest = self.rest[len(text) :]

    def takes(self, text: str) -> bool:
        if not self.rest.startswith(text):
            return False
        self.rest = self.rest[len(text) :]
        return True

    def blanks(self) -> None:
        self.rest = self.rest.lstrip(" ")


def must(is_so: bool) -> None:
    if not is_so:
        raise ValueError


def digits(text: str) -> str:
    must(text.isascii() and text.isdigit())
    return text


def signed(text: str) -> str:
    digits(text.removeprefix("-"))
    return text


def decimal(text: str) -> str:
    whole, dot, rest = text.removeprefix("-").partition(".")
    digits(whole)
    if dot:
        digits(rest)
    return text


def of_digits_or_dash(text: str) -> str:
    return text if text == "-" else digits(text)


def clock(text: str) -> str:
    must(len(text) == 8 and text[2] == text[5] == ":" and (text[:2] + text[3:5] + text[6:]).isdigit())
    return text


def iso(text: str) -> str:
    """Date and time, perhaps a fraction, perhaps a Z."""
    must(len(text) >= 19 and text[4] == text[7] == "-" and text[10] in "T ")
    digits(text[:4] + text[5:7] + text[8:10])
    clock(text[11:19])
    rest = text[19:].removesuffix("Z")
    if rest:
        must(rest[0] in ".,")
        digits(rest[1:])
    return text


def absent(record: dict[str, Any], *names: str) -> dict[str, Any]:
    """Without those of these fields that are a dash."""
    return {name: value for name, value in record.items() if not (name in names and value == "-")}


def numbers(record: dict[str, Any], *names: str) -> dict[str, Any]:
    """With these fields as numbers, where they spell one; without those that are a dash."""
    return {name: scalar(value) if name in names else value for name, value in absent(record, *names).items()}


def auditd(line: str) -> tuple[dict[str, Any], str, str]:
    cut, record = Cut(line), dict[str, Any]()
    if cut.takes("node="):
        record["node"] = cut.word()
    cut.skip("type=")
    record["type"] = cut.word()
    cut.skip("msg=audit(")
    time = cut.upto(":")
    must("." in time and not time.startswith("-"))
    record["time"] = decimal(time)
    record["serial"] = digits(cut.upto("):"))
    return {**numbers(record, "time", "serial"), **pairs_in(cut.rest)}, "", ""


def squid(line: str) -> tuple[dict[str, Any], str, str]:
    cut, record = Cut(line), dict[str, Any]()
    record["time"] = cut.word()
    whole, _, rest = record["time"].partition(".")
    must(len(digits(whole)) in (9, 10) and len(digits(rest)) == 3)
    cut.blanks()
    record["elapsed"] = signed(cut.word())
    record["remotehost"] = cut.word()
    record["code"] = cut.upto("/")
    must(set(record["code"]) <= _CAPITALS | {"_"})
    record["status"] = digits(cut.word())
    must(len(record["status"]) == 3)
    record["bytes"] = digits(cut.word())
    for name in ("method", "URL", "rfc931"):
        record[name] = cut.word()
    record["peerstatus"] = cut.upto("/", most=" ")
    record["peerhost"] = cut.word()
    record["type"] = cut.last()
    if cut.takes(" "):
        record["more"] = cut.rest
    else:
        must(cut.rest == "")
    return absent(numbers(record, "time", "elapsed", "status", "bytes"), "rfc931", "peerhost", "type"), "", ""


def haproxy(line: str) -> tuple[dict[str, Any], str, str]:
    record = dict[str, Any]()
    try:
        cut = Cut(line)
        if cut.takes("<"):
            record["PRI"] = digits(cut.upto(">"))
        month, day, of_day = cut.rest[:3], cut.rest[4:6].strip(), cut.rest[7:15]
        must(cut.rest[3] == cut.rest[6] == cut.rest[15] == " ")
        record["TIMESTAMP"] = f"2026-{_MONTHS.index(month) + 1:02}-{int(digits(day)):02}T{clock(of_day)}"
        cut.rest = cut.rest[16:]
        record["HOSTNAME"] = cut.word()
        if ":" in cut.rest.partition("[")[0]:
            record["TAG"] = cut.upto(": ", most=" :{")
        else:
            record["TAG"] = cut.upto("[", most=" :{")
            record["PID"] = cut.upto("]: ", most="]")
    except (ValueError, IndexError):
        cut, record = Cut(line), {}
    behind = cut.rest
    try:
        return numbers({**record, **_haproxy_http(cut)}, *_HAPROXY), "", ""
    except ValueError:
        return numbers(record, "PRI", "PID"), "CONTENT", behind


_HAPROXY = (
    "PRI", "PID", "client_port", "TR", "Tw", "Tc", "Tr", "Ta", "status_code", "bytes_read", "actconn", "feconn",
    "beconn", "srv_conn", "retries", "srv_queue", "backend_queue",
)  # fmt: skip


def _haproxy_http(cut: Cut) -> dict[str, Any]:
    record: dict[str, Any] = {}
    record["client_ip"], colon, port = cut.word().rpartition(":")
    must(bool(record["client_ip"] and colon))
    record["client_port"] = digits(port)
    cut.skip("[")
    record["accept_date"] = cut.upto("] ", most=" ")
    day, month, rest = record["accept_date"].split("/")
    must(month in _MONTHS and rest.partition(":")[0] == "2026" and "." in rest)
    digits(day + rest.rpartition(".")[2])
    clock(rest.partition(":")[2].rpartition(".")[0])
    record["frontend_name"] = cut.word()
    record["backend_name"] = cut.upto("/", most=" ")
    record["server_name"] = cut.word()
    times = cut.word().split("/")
    must(len(times) == 5)
    times[4] = times[4].removeprefix("+")
    record |= dict(zip(("TR", "Tw", "Tc", "Tr", "Ta"), map(signed, times), strict=True))
    record["status_code"] = signed(cut.word())
    record["bytes_read"] = digits(cut.word().removeprefix("+"))
    cookies = cut.word(), cut.word()
    record |= {f"captured_{name}_cookie": cookie for name, cookie in zip(("request", "response"), cookies, strict=True)}
    record["termination_state"] = cut.word()
    must(len(record["termination_state"]) == 4)
    counts = cut.word().split("/")
    must(len(counts) == 5)
    counts[4] = counts[4].removeprefix("+")
    record |= dict(zip(("actconn", "feconn", "beconn", "srv_conn", "retries"), map(digits, counts), strict=True))
    queues = cut.word().split("/")
    must(len(queues) == 2)
    record |= dict(zip(("srv_queue", "backend_queue"), map(digits, queues), strict=True))
    for name in ("request", "response"):
        if cut.takes("{"):
            record[f"captured_{name}_headers"] = cut.upto("} ", most="}", least=0)
    cut.skip('"')
    record["http_request"] = cut.rest.partition('"')[0]
    return absent(record, "captured_request_cookie", "captured_response_cookie")


def envoy(line: str) -> tuple[dict[str, Any], str, str]:
    cut, record = Cut(line), dict[str, Any]()
    cut.skip("[")
    record["start_time"] = iso(cut.upto('] "', most=" "))
    must(record["start_time"].endswith("Z") and "T" in record["start_time"] and "." in record["start_time"])
    for name in ("method", "path"):
        record[name] = cut.upto(" ", most='"')
    record["protocol"] = cut.upto('" ', most=" ")
    record["response_code"] = digits(cut.word())
    record["response_flags"] = cut.word()
    istio = ("response_code_details", "connection_termination_details")
    begin = cut.rest
    try:
        for name in istio:
            record[name] = cut.upto(" ", most='"')
        cut.skip('"')
        record["upstream_transport_failure_reason"] = cut.upto('" ', most='"', least=0)
    except ValueError:
        cut.rest = begin
        record = {name: value for name, value in record.items() if name not in istio}
    for name in ("bytes_received", "bytes_sent", "duration"):
        record[name] = digits(cut.word())
    record["upstream_service_time"] = cut.word()
    for number, name in enumerate(("x_forwarded_for", "user_agent", "request_id", "authority", "upstream_host")):
        cut.skip(' "' if number else '"')
        record[name] = cut.upto('"', least=0)
    begin = cut.rest
    try:
        behind = {}
        for name in ("upstream_cluster", "upstream_local_address", "downstream_local_address",
                     "downstream_remote_address", "requested_server_name", "route_name"):  # fmt: skip
            cut.skip(" ")
            behind[name] = cut.last()
        record |= behind
    except ValueError:
        cut.rest = begin
    counted = ("response_code", "bytes_received", "bytes_sent", "duration", "upstream_service_time")
    return absent(numbers(record, *counted), *(set(record) - {"start_time"})), "", ""


def _endpoint(cut: Cut, *names: str) -> dict[str, Any]:
    """An address and a port; nothing for a dash."""
    word = cut.word()
    if word == "-":
        return {}
    address, _, port = word.rpartition(":")
    must(address != "")
    return dict(zip(names, (address, digits(port)), strict=True))


def _quoted(cut: Cut) -> str:
    cut.skip('"')
    return cut.upto('"', least=0)


def _request(cut: Cut, *names: str) -> dict[str, Any]:
    parts = _quoted(cut)
    words = parts.removesuffix(" ").split(" ")
    must(len(words) == 3 and all(words))
    return dict(zip(names, words, strict=True))


def elb(line: str) -> tuple[dict[str, Any], str, str]:
    cut = Cut(line)
    record: dict[str, Any] = {"timestamp": iso(cut.word()), "elb_name": cut.word()}
    client = _endpoint(cut, "request_ip", "request_port")
    must(bool(client))
    record |= client | _endpoint(cut, "backend_ip", "backend_port")
    for name in ("request_processing_time", "backend_processing_time", "client_response_time"):
        record[name] = decimal(cut.word())
    for name in ("elb_response_code", "backend_response_code"):
        record[name] = of_digits_or_dash(cut.word())
    for name in ("received_bytes", "sent_bytes"):
        record[name] = digits(cut.word())
    record |= _request(cut, "request_verb", "url", "protocol")
    texts = ("request_verb", "url", "protocol", "user_agent", "ssl_cipher", "ssl_protocol")
    try:
        cut.skip(" ")
        behind = {"user_agent": _quoted(cut)}
        cut.skip(" ")
        record |= {**behind, "ssl_cipher": cut.word(), "ssl_protocol": cut.last()}
    except ValueError:
        pass
    counted = set(record) - {"timestamp", "elb_name", "request_ip", "backend_ip", *texts}
    return absent(numbers(record, *counted), *texts), "", ""


def alb(line: str) -> tuple[dict[str, Any], str, str]:
    cut = Cut(line)
    record: dict[str, Any] = {"type": cut.word(), "time": iso(cut.word()), "elb": cut.word()}
    must(record["type"].isalnum() and record["type"].lower() == record["type"])
    client = _endpoint(cut, "client_ip", "client_port")
    must(bool(client))
    record |= client | _endpoint(cut, "target_ip", "target_port")
    for name in ("request_processing_time", "target_processing_time", "response_processing_time"):
        record[name] = decimal(cut.word())
    for name in ("elb_status_code", "target_status_code"):
        record[name] = of_digits_or_dash(cut.word())
    for name in ("received_bytes", "sent_bytes"):
        record[name] = digits(cut.word())
    record |= _request(cut, "request_verb", "request_url", "request_proto")
    cut.skip(" ")
    record["user_agent"] = _quoted(cut)
    cut.skip(" ")
    for name in ("ssl_cipher", "ssl_protocol", "target_group_arn"):
        record[name] = cut.word()
    for name in ("trace_id", "domain_name", "chosen_cert_arn"):
        record[name] = _quoted(cut)
        cut.skip(" ")
    for name in ("matched_rule_priority", "request_creation_time"):
        record[name] = cut.word()
    record["actions_executed"] = _quoted(cut)
    for name in ("redirect_url", "lambda_error_reason"):
        cut.skip(" ")
        record[name] = _quoted(cut)
    begin, behind = cut.rest, dict[str, Any]()
    try:
        for name in ("target_port_list", "target_status_code_list", "classification", "classification_reason"):
            cut.skip(" ")
            behind[name] = _quoted(cut)
        record |= behind
        if cut.takes(" ") and cut.rest:
            record["conn_trace_id"] = cut.last()
    except ValueError:
        cut.rest = begin
    counted = (
        "client_port", "target_port", "request_processing_time", "target_processing_time", "response_processing_time",
        "elb_status_code", "target_status_code", "received_bytes", "sent_bytes", "matched_rule_priority",
    )  # fmt: skip
    kept = {"type", "time", "elb", "client_ip", "target_ip", "request_verb", "request_url", "request_proto",
            "request_creation_time"}  # fmt: skip
    return absent(numbers(record, *counted), *(set(record) - kept)), "", ""


def s3(line: str) -> tuple[dict[str, Any], str, str]:
    cut = Cut(line)
    record: dict[str, Any] = {"bucketowner": cut.word(), "bucket_name": cut.word()}
    cut.skip("[")
    record["requestdatetime"] = cut.upto("] ")
    day, month, rest = record["requestdatetime"].split("/")
    must(month in _MONTHS and rest[4] == ":" and rest[13:15] in (" +", " -") and len(rest) == 19)
    digits(day + rest[:4] + rest[15:])
    for name in ("remoteip", "requester", "requestid", "operation", "key"):
        record[name] = cut.word()
    if not cut.takes("- "):
        record["request_uri"] = _quoted(cut)
        cut.skip(" ")
    record["httpstatus"] = of_digits_or_dash(cut.word())
    record["errorcode"] = cut.word()
    for name in ("bytessent", "objectsize", "totaltime", "turnaroundtime"):
        record[name] = of_digits_or_dash(cut.word())
    for name in ("referrer", "useragent"):
        if not cut.takes("- "):
            record[name] = _quoted(cut)
            cut.skip(" ")
    record["versionid"] = cut.last()
    begin, behind = cut.rest, dict[str, Any]()
    try:
        for name in ("hostid", "sigv", "ciphersuite", "authtype", "endpoint", "tlsversion"):
            cut.skip(" ")
            behind[name] = cut.last()
        record |= behind
        for name in ("accesspointarn", "aclrequired"):
            cut.skip(" ")
            record[name] = cut.last()
    except ValueError:
        cut.rest = begin
    counted = ("httpstatus", "bytessent", "objectsize", "totaltime", "turnaroundtime")
    kept = {"bucketowner", "bucket_name", "requestdatetime", "requestid", "operation", "request_uri"}
    return absent(numbers(record, *counted), *(set(record) - kept)), "", ""


def mysql(line: str) -> tuple[dict[str, Any], str, str]:
    cut, record = Cut(line), dict[str, Any]()
    if line[10:12] == "  ":
        digits(line[:4] + line[5:7] + line[8:10])
        must(line[4] == line[7] == "-" and line[19] == " ")
        record["time"] = f"{line[:10]}T{clock('0' + line[12:19])}"
        cut.rest = line[20:]
    else:
        must(line[10:11] in ("T", " "))
        day, cut.rest = line[:11], line[11:]
        record["time"] = iso(day + cut.word())
    record["thread"] = digits(cut.word())
    cut.skip("[")
    record["level"] = cut.upto("] ")
    must(record["level"].isascii() and record["level"].isalpha())
    begin = cut.rest
    try:
        cut.skip("[MY-")
        record["err_code"] = f"MY-{digits(cut.upto('] ['))}"
        record["subsystem"] = cut.upto("] ", most="]")
    except ValueError:
        cut.rest = begin
        record.pop("err_code", None)
    return numbers(record, "thread"), "msg", cut.rest


def redis(line: str) -> tuple[dict[str, Any], str, str]:
    cut, record = Cut(line), dict[str, Any]()
    record["pid"] = digits(cut.upto(":"))
    record["role"] = cut.word()
    must(record["role"] in ("X", "C", "S", "M"))
    day, month, year, of_day = cut.word(), cut.word(), cut.word(), cut.word()
    must(len(digits(day)) == 2 and month in _MONTHS and len(digits(year)) == 4)
    clock(of_day[:8])
    must(of_day[8] == "." and len(digits(of_day[9:])) == 3)
    record["time"] = f"{day} {month} {year} {of_day}"
    record["level"] = cut.word()
    must(record["level"] in (".", "-", "*", "#"))
    return numbers(record, "pid"), "message", cut.rest


def cassandra(line: str) -> tuple[dict[str, Any], str, str]:
    cut, record = Cut(line), dict[str, Any]()
    record["level"] = cut.word()
    must(set(record["level"]) <= _CAPITALS)
    cut.blanks()
    cut.skip("[")
    record["thread"] = cut.upto("] ", most="]", least=0)
    day, of_day = cut.word(), cut.word()
    record["time"] = iso(f"{day} {of_day}")
    record["file"], _, number = cut.upto(" - ", most=" ").partition(":")
    must(record["file"] != "")
    record["line"] = digits(number)
    return numbers(record, "line"), "text", cut.rest


def php(line: str) -> tuple[dict[str, Any], str, str]:
    cut, record = Cut(line), dict[str, Any]()
    cut.skip("[")
    day, of_day = cut.word(), cut.word()
    must(len(day) == 11 and day[2] == day[6] == "-" and day[3:6] in _MONTHS)
    digits(day[:2] + day[7:])
    clock(of_day[:8])
    must(of_day[8:] == "" or (of_day[8] == "." and digits(of_day[9:]) != ""))
    record["time"] = f"{day} {of_day}"
    record["timezone"] = cut.upto("] ", most=" ]")
    must(record["timezone"][0].isalpha())
    begin = cut.rest
    if cut.takes("PHP "):
        level, colon, rest = cut.rest.partition(":")
        first, *others = level.split(" ")
        is_level = first[:1] in _CAPITALS and first[1:].islower() and all(word.islower() for word in others)
        if colon and is_level and level.replace(" ", "").isalpha() and rest.startswith(" "):
            record["level"], cut.rest = level, rest.lstrip(" ")
        else:
            cut.rest = begin
    return record, "text", cut.rest


def clickhouse(line: str) -> tuple[dict[str, Any], str, str]:
    cut, record = Cut(line), dict[str, Any]()
    day, of_day = cut.word(), cut.word()
    must(len(day) == 10 and day[4] == day[7] == ".")
    digits(day.replace(".", ""))
    clock(of_day[:8])
    must(of_day[8] == "." and digits(of_day[9:]) != "")
    record["time"] = f"{day.replace('.', '-')}T{of_day}"
    if not cut.rest.startswith("[ "):
        cut.skip("[")
        record["host"] = cut.upto("] ", most=" ]")
    cut.skip("[ ")
    record["thread_id"] = digits(cut.upto(" ] {"))
    record["query_id"] = cut.upto("} <", most="}", least=0)
    record["level"] = cut.upto("> ")
    must(record["level"].isascii() and record["level"].isalpha())
    record["logger_name"] = cut.upto(": ", most=":")
    return numbers(record, "thread_id"), "message", cut.rest


def mongod(line: str) -> tuple[dict[str, Any], str, str]:
    cut, record = Cut(line), dict[str, Any]()
    time = cut.word()
    iso(time.removesuffix("+0000"))
    record["time"] = time
    record["severity"] = cut.word()
    must(record["severity"][0] in "FEWID" and record["severity"][1:] in ("", *"12345"))
    record["component"] = cut.word()
    must(record["component"] == "-" or set(record["component"]) <= _CAPITALS | {"_"})
    cut.blanks()
    cut.skip("[")
    record["context"] = cut.upto("] ", most="]", least=0)
    return absent(record, "component"), "message", cut.rest


def cbs(line: str) -> tuple[dict[str, Any], str, str]:
    cut, record = Cut(line), dict[str, Any]()
    record["time"] = iso(cut.upto(", "))
    record["level"] = cut.word()
    must(record["level"] in ("Info", "Warning", "Error", "Perf", "Fatal"))
    cut.blanks()
    record["component"] = cut.word()
    must(record["component"].isascii() and record["component"].isalpha())
    cut.blanks()
    return record, "text", cut.rest


def clocked(line: str) -> tuple[dict[str, Any], str, str]:
    cut = Cut(line)
    cut.takes("[")
    of_day = cut.upto(" ").removesuffix("]")
    clock(of_day[:8])
    must(of_day[8:] == "" or (of_day[8] in ".," and digits(of_day[9:]) != ""))
    return {"clock": of_day, **level_in(cut.rest.encode())}, "text", cut.rest


def of(parse: Any, lines: list[bytes]) -> dict[str, Any] | None:
    """The record of these lines, of which the first is the service's; None where it is not."""
    try:
        record, name, text = parse(text_of(lines[0]).removesuffix("\r"))
    except (ValueError, IndexError):
        return None
    if name:
        return with_body(record, name, [text.encode(), *lines[1:]])
    trace = text_of(b"\n".join(lines[1:])).rstrip(" \t\r\n")
    return record | ({"trace": trace} if trace else {})


def dmesg(line: str) -> tuple[dict[str, Any], str, str]:
    cut, record = Cut(line), dict[str, Any]()
    if cut.takes("<"):
        record["PRI"] = digits(cut.upto(">"))
        must(len(record["PRI"]) <= 3)
    elif not cut.rest.startswith("["):
        record["facility"] = cut.upto(":").rstrip(" ")
        record["level"] = cut.upto(": ").rstrip(" ")
        must(all(part.isascii() and part.isalpha() and part.islower() for part in record.values()))
    cut.skip("[")
    cut.blanks()
    record["uptime"] = decimal(cut.upto("]"))
    must(not record["uptime"].startswith("-") and len(record["uptime"].partition(".")[2]) == 6)
    if cut.takes("["):
        cut.blanks()
        record["caller"] = cut.upto("]")
        must(record["caller"][:1] in _CAPITALS and digits(record["caller"][1:]) != "")
    cut.skip(" ")
    return numbers(record, "PRI", "uptime"), "text", cut.rest


def npm(line: str) -> tuple[dict[str, Any], str, str]:
    cut = Cut(line)
    record = {"number": digits(cut.word()), "level": cut.word()}
    must(record["level"] in ("silly", "verbose", "http", "timing", "info", "notice", "warn", "error"))
    return numbers(record, "number"), "text", cut.rest


def heroku(line: str) -> tuple[dict[str, Any], str, str]:
    cut = Cut(line)
    record: dict[str, Any] = {"time": iso(cut.word())}
    record["source"] = cut.upto("[")
    must(record["source"] in ("app", "heroku"))
    record["dyno"] = cut.upto("]: ", most=" ]")
    return {**record, **level_in(cut.rest.encode())}, "text", cut.rest


def nest(line: str) -> tuple[dict[str, Any], str, str]:
    cut = Cut(line)
    cut.skip("[")
    record: dict[str, Any] = {"app": cut.upto("] ", most="] "), "pid": digits(cut.word())}
    cut.blanks()
    cut.skip("- ")
    month, day, year = cut.upto(", ").split("/")
    must(len(month) == len(day) == 2 and month[0] in "01" and day[0] in "0123" and digits(month + day + year) != "")
    hour, rest = cut.word().split(":", 1)
    half = cut.word()
    must(len(digits(hour)) <= 2 and half in ("AM", "PM"))
    of_day = clock(f"{int(hour) % 12 + 12 * (half == 'PM'):02}:{rest}")
    record["time"] = f"{year}-{month}-{day}T{of_day}"
    cut.blanks()
    record["level"] = cut.word()
    must(record["level"] in ("LOG", "ERROR", "WARN", "DEBUG", "VERBOSE", "FATAL"))
    return numbers(record, "pid"), "text", cut.rest


def uwsgi(line: str) -> tuple[dict[str, Any], str, str]:
    cut = Cut(line)
    cut.skip("[pid: ")
    record: dict[str, Any] = {"pid": digits(cut.upto("|app: ")), "app": signed(cut.upto("|req: "))}
    record["req"] = cut.upto("] ", most=" ")
    record["addr"] = cut.word()
    cut.skip("(")
    record["user"] = cut.upto(") ", least=0)
    cut.skip("{")
    cut.upto("} [")
    record["time"] = cut.upto("] ")
    weekday, month, day, of_day, year = record["time"].split()
    must(len(weekday) == 3 and month in _MONTHS and digits(day + year) != "" and clock(of_day) != "")
    record["method"] = cut.word()
    record["uri"] = cut.word()
    cut.skip("=> generated ")
    record["rsize"] = digits(cut.upto(" bytes in "))
    record["msecs"] = digits(cut.upto(" msecs ("))
    record["proto"] = cut.upto(" ", most=")")
    record["status"] = digits(cut.upto(")"))
    if cut.takes(" "):
        record["more"] = cut.rest
    return numbers(record, "pid", "app", "rsize", "msecs", "status"), "", ""


def leveltime(line: str) -> tuple[dict[str, Any], str, str]:
    cut = Cut(line)
    cut.takes("[")
    name = cut.rest[: len(cut.rest) - len(cut.rest.lstrip(string.ascii_uppercase))]
    must(name in ("INFO", "WARNING", "ERROR"))
    cut.skip(name)
    cut.takes("]")
    cut.takes(" -")
    cut.takes(":")
    cut.skip(" ")
    cut.blanks()
    cut.takes("[")
    size = next((size for size in (24, 23, 20, 19) if _is_iso(cut.rest[:size])), 0)
    must(size > 0)
    record = {"level": name, "time": cut.rest[:size]}
    cut.rest = cut.rest[size:]
    cut.takes("]")
    cut.takes(" -")
    cut.takes(":")
    cut.takes(" ")
    return record, "text", cut.rest


def _is_iso(text: str) -> bool:
    try:
        return iso(text) != "" and text[-1] not in ".,"
    except (ValueError, IndexError):
        return False


def tinyproxy(line: str) -> tuple[dict[str, Any], str, str]:
    cut = Cut(line)
    record: dict[str, Any] = {"level": cut.word()}
    must(record["level"] in ("CRITICAL", "ERROR", "WARNING", "NOTICE", "CONNECT", "INFO"))
    cut.blanks()
    time = cut.upto(" [")
    month, day, of_day = time[:3], time[4:6].strip(), time[7:]
    must(time[3] == time[6] == " ")
    record["time"] = f"2026-{_MONTHS.index(month) + 1:02}-{int(digits(day)):02}T{clock(of_day[:8])}"
    if of_day[8:]:
        must(of_day[8] == "." and digits(of_day[9:]) != "")
        record["time"] += of_day[8:]
    record["pid"] = digits(cut.upto("]: "))
    return numbers(record, "pid"), "text", cut.rest


CLOCKS = ["06:10:01", "16:10:02"]
ISO = [f"2026-11-20T{clock}{rest}" for clock in CLOCKS for rest in (".123456Z", "Z")]
COMMAS = [f"2026-11-20 {clock},123" for clock in CLOCKS]
NAMES = ["a", "web-1", "é", "x.y"]
COUNTS = ["0", "17", "00", "123456789"]
WORDS = ["-", "x", "a/b", "1.2"]
PORTS = ["10.0.0.5:443", "::1:80", "-", "10.0.0.5"]
TEXTS = ["no route", "", "level=error n=5", '{"n": 5}', 'a=1 b="2 3" then words', "é\x01", "a: b", " x"]
QUOTED = ["-", "", "curl/8", "a b"]
SECONDS = ["0.001", "-1", "12", "x"]
CODES = ["200", "503", "-", "x"]
REQUESTS = ["GET http://a/ HTTP/1.1", "- - - ", "GET /", "GET  /"]
HEAD = "<13>Nov 20 06:10:01 lb haproxy[7]: "

#: Of each service, the parts of a line: texts one of which stands there.
PARTS: dict[str, list[list[str]]] = {
    "auditd": [
        ["", "", "node=h1 "], ["type=SYSCALL ", "type=CWD ", "kind=x "], ["msg=audit(1795155001.123:", "msg=audit(1:"],
        COUNTS, ["): ", "):  ", "):"],
        ["arch=c000003e success=no exit=-13 comm=\"cat\"", "pid=1 msg='op=login res=failed' UID=\"a\"", "", "cwd=\"/\"",
         "alone a=1", "a=1\x1dB=\"x\""],
    ],
    "squid": [
        ["1795155001.123", "1795155001"], ["    ", " "], ["250", "-5"], [" 10.0.0.5 "],
        ["TCP_MISS/", "tcp/"], ["200", "503", "000", "20"], [" 1024 GET http://a/ "], ["-", "ada"],
        [" HIER_DIRECT/10.0.0.1 ", " HIER_NONE/- "], ["-", "text/html", ""], ["", "", " [a: b]"],
    ],
    "haproxy": [
        ["", HEAD, HEAD, HEAD[4:]], ["10.0.1.2:33317 ", "::1:5 ", "10.0.1.2 "],
        ["[20/Nov/2026:06:10:01.655] ", "[x] "], ["http-in~ "], ["static/srv1 ", "static/<NOSRV> ", "static "],
        ["10/0/30/69/109 ", "-1/-1/-1/-1/+5 ", "1/2 "], ["200 ", "-1 "], ["2750 ", "+5 "], ["- - "], ["---- ", "SC-- "],
        ["1/1/1/1/0 ", "1/1/1/1/+2 "], ["0/0 "], ["", "{1wt.eu} ", "{a|b} {} "],
        ['"GET /index.html HTTP/1.1"', '"GET /cut', '"<BADREQ>"', "x"],
    ],
    "envoy": [
        ["[2026-11-20T06:10:01.123Z] ", "[2026-11-20T06:10:01Z] "], ['"GET /a HTTP/2" ', '"- - -" ', '"GET" '],
        CODES[:2], [" UF "], ["", "", 'via_upstream - "-" ', 'via_upstream - "a b" '], ["0 41 25 "], ["-", "24"],
        [' "-" "curl/8" "5d-9f" "book" "10.0.0.1:9080"', ' "" "-" "-" "-" "-"', ' "-"'],
        ["", "", " outbound|80||a 10.0.0.1:1 - 10.0.0.2:2 - default", " outbound"],
    ],
    "elb": [
        ISO, [" my-lb "], PORTS[:2], [" "], PORTS[:3], [" "], SECONDS, [" "], SECONDS[:3], [" "], SECONDS[:3], [" "],
        CODES, [" "], CODES[:3], [" "], COUNTS, [" "], COUNTS, [' "'], REQUESTS, ['"'], ["", ' "curl/8" - -', ' "x"'],
    ],
    "alb": [
        ["http ", "h2 ", "HTTP "], ISO, [" app/x/50dc "], PORTS[:2], [" "], PORTS[:3], [" "], SECONDS, [" "],
        SECONDS[:3], [" "], SECONDS[:3], [" "], CODES, [" "], CODES[:3], [" "], COUNTS, [" "], COUNTS, [' "'], REQUESTS,
        ['" "'], QUOTED, ['" '], ["ECDHE TLSv1.2 arn:x ", "- - - "], ['"Root=1-5" '], ['"-" "-" ', '"a.b" "arn:y" '],
        ["0 ", "- "], [*ISO, "-"], [' "forward" "-" "-"', ' "x"'], ["", ' "10.0.0.1:80" "200" "-" "-"'],
        ["", " TID_1"],
    ],
    "s3": [
        ["79a5 "], ["bucket "], ["[20/Nov/2026:06:10:01 +0000] ", "[x] "], ["192.0.2.3 ", "- "], ["arn:u ", "- "],
        ["3E57 "], ["REST.GET.OBJECT "], ["a/b.txt ", "- "], ['"GET /b/x HTTP/1.1" ', "- ", '"" '], CODES, [" "],
        ["SlowDown ", "- "], ["113 ", "- "], ["- "], ["7 "], ["- "], ['"-" ', "- "], ['"S3Console/0.4" ', "- "],
        ["-", "v1"], ["", " s9= SigV4 ECDHE AuthHeader b.s3 TLSv1.2", " s9="], ["", " arn:aws", " - Yes"],
    ],
    "mysql": [
        [*ISO, "2026-11-20  6:10:01", "2026-11-20 16:10:01", "2026-11-20  16:10:01"], [" "], COUNTS, [" "],
        ["[Note] ", "[ERROR] ", "[Warning] ", "[7] "], ["", "[MY-010116] [Server] ", "[MY-x] [y] ", "[MY-5] "], TEXTS,
    ],
    "redis": [
        ["1234", "1", "x"], [":M ", ":C ", ":Q "], ["20 Nov 2026 "], [f"{clock}.123" for clock in CLOCKS], [" "],
        ["* ", "# ", ". ", "- ", "? "], TEXTS,
    ],
    "cassandra": [
        ["INFO  ", "ERROR ", "Info "], ["[main] ", "[Read-2] ", "main "], COMMAS, [" A.java:592", " A.java:", " :5"],
        [" - "], TEXTS,
    ],
    "php": [
        ["[20-Nov-2026 06:10:01 ", "[20-Nov-2026 06:10:01.5 ", "[20-Nov-2026 "], ["UTC] ", "Europe/Berlin] ", "] "],
        ["PHP Warning:  ", "PHP Fatal error:  ", "PHP x: ", "", "PHP Notice:x"], TEXTS,
    ],
    "clickhouse": [
        ["2026.11.20 06:10:01.123456 ", "2026.11.20 06:10:01 "], ["", "[host-1] "], ["[ 7 ] ", "[ x ] "],
        ["{} ", "{5d-4b} "], ["<Error> ", "<Information> ", "<> "], ["Application: ", "a b: ", ": "], TEXTS,
    ],
    "mongod": [
        ["2026-11-20T06:10:01.123+0000 ", *(f"{time} " for time in ISO)], ["I ", "E ", "D2 ", "X "],
        ["NETWORK  ", "- ", "net "], ["[conn5] ", "[] ", "conn "], TEXTS,
    ],
    "cbs": [
        [f"2026-11-20 {clock}" for clock in CLOCKS], [", ", " "], ["Info                  ", "Error ", "Odd "],
        ["CBS    ", "DISM ", "7 "], TEXTS,
    ],
    "dmesg": [
        ["", "", "<6>", "kern  :err   : ", "kern:"], ["[    0.000000]", "[12345.678901]", "[  1.5]"],
        ["", "", "[    T1]", "[ C12]", "[x]"], [" ", "  "], TEXTS,
    ],
    "tinyproxy": [
        ["CONNECT   ", "NOTICE    ", "ERROR ", "Connect "], ["Nov 20 06:10:01.123", "Nov  1 06:10:01", "Nov 20"],
        [" [7]: ", " [17]: ", " [x]: "], TEXTS,
    ],
    "npm": [COUNTS[:2], [" "], ["verbose ", "http ", "error ", "silly ", "loud "], TEXTS],
    "nest": [
        ["[Nest] ", "[api] ", "[] "], ["123 ", "x "], [" - ", "- "],
        ["11/20/2026, 2:10:01 PM", "11/20/2026, 12:10:01 AM", "x"],
        ["     ", " "], ["LOG ", "ERROR ", "INFO "], ["[X] no route", "up"],
    ],
    "uwsgi": [
        ["[pid: 7|app: 0|req: 1/2] ", "[pid: 7|app: -1|req: 1/2] ", "[pid: x] "], ["10.0.0.1 (ada) ", "::1 () "],
        ["{28 vars in 300 bytes} "], ["[Fri Nov 20 06:10:01 2026] ", "[x] "], ["GET /a ", "POST /b?c=1 "],
        ["=> generated 5 bytes in 2 msecs ", "=> x "], ["(HTTP/1.1 200)", "(HTTP/1.1 503)", "()"],
        ["", " 2 headers in 60 bytes"],
    ],
    "heroku": [
        ISO, [" heroku[router]: ", " app[web.1]: ", " heroku[]: ", " host x[1]: "],
        ["at=error code=H12 status=503", "ERROR boom", "State changed", "x"],
    ],
    "leveltime": [
        ["INFO", "ERROR", "[WARNING]", "Info"], [" ", " - ", ": ", "  "], ["", "", "["],
        [f"2026-11-20 {CLOCKS[0]},123", f"2026-11-20T{CLOCKS[0]}.123Z", f"2026-11-20 {CLOCKS[1]}", "20.11."],
        ["", "]"], [" ", ": ", " - "], ["no route", "x", "level=error n=5"],
    ],
    "clock": [
        ["", "["], CLOCKS, ["", ".123", ",1", "."], [" ", "] "],
        ["[main] INFO  com.x.App - up", "WARN x", "info: no", "x", "zone: error: no", "curl: Error"],
    ],
}  # fmt: skip


def parser_of(name: str) -> Any:
    return globals()["clocked" if name == "clock" else name]


def first_of(name: str) -> str:
    """A line of the service, of the first texts of each part."""
    return "".join(texts[0] for texts in PARTS[name])
