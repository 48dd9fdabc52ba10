//! The tools in the shell, with a network that answers, answers wrongly, or does not answer.

use super::frames::{MACHINE, MACHINE_SIX, ROUTER, ROUTER_SIX};
use super::host::Host;
use super::link::Faults;
use super::services::WRONG;
use anyhow::{Context, Result, bail};
use smoltcp::iface::SocketHandle;
use smoltcp::socket::tcp::State;
use smoltcp::wire::{IpAddress, IpEndpoint};
use std::net::IpAddr;

/// The scenario.
pub fn run(host: &mut Host<'_>) -> Result<()> {
    // Without an answer they take long: others go on meanwhile.
    let from = host.printed();
    for name in UNANSWERED {
        host.shell(&format!("nslookup {name} &"), 5.0)?;
    }
    host.shell("echod &", 5.0)?;
    names(host).context("nslookup")?;
    pings(host).context("ping")?;
    pages(host).context("wget")?;
    netcat(host).context("nc")?;
    echo(host).context("echod")?;
    shown(host).context("ifconfig and netstat")?;
    unanswered(host, from).context("nslookup without an answer")
}

/// Names that are not answered, or only by what is no answer to them.
const UNANSWERED: [&str; 2] = ["wrong.test", "silent.test"];

fn unanswered(host: &mut Host<'_>, from: usize) -> Result<()> {
    for name in UNANSWERED {
        host.shows(from, &format!("nslookup: {name}: the other side does not answer"), 25.0)?;
        let asked = host.names.count(name);
        if asked < 4 {
            bail!("{name} was asked for only {asked} times");
        }
    }
    if host.printed_since(from).contains(&WRONG.to_string()) {
        bail!("an answer to what was not asked was accepted");
    }
    says(host, "nslookup four.test", 0, &["four.test 192.0.2.4"], 5.0).map(drop)
}

/// Runs a command and compares its status, and that it says these things in this order.
fn says(host: &mut Host<'_>, command: &str, status: u8, parts: &[&str], seconds: f64) -> Result<String> {
    let (ended, text) = host.shell(command, seconds)?;
    expect(command, (ended, text), status, parts)
}

fn expect(command: &str, (ended, text): (u8, String), status: u8, parts: &[&str]) -> Result<String> {
    let mut rest = text.as_str();
    for part in parts {
        rest = match rest.split_once(part) {
            Some((_, rest)) => rest,
            None => bail!("{command}: it does not say {part:?}, but {text:?}"),
        };
    }
    if ended != status {
        bail!("{command}: status {ended} instead of {status}, and {text:?}");
    }
    Ok(text)
}

fn names(host: &mut Host<'_>) -> Result<()> {
    says(host, "nslookup four.test", 0, &["four.test 192.0.2.4\n"], 5.0)?;
    says(
        host,
        "nslookup both.test",
        0,
        &["both.test 192.0.2.5", "both.test 192.0.2.6", "both.test 2001:db8:0:9::5"],
        5.0,
    )?;
    says(host, "nslookup six.test", 0, &["six.test 2001:db8:0:1::2"], 5.0)?;
    says(host, "nslookup alias.test", 0, &["alias.test 192.0.2.4"], 5.0)?;
    says(host, "nslookup none.test", 1, &["none.test", "no such name"], 5.0)?;
    // The first query is lost: the second one is answered.
    says(host, "nslookup late.test", 0, &["late.test 192.0.2.7"], 8.0).map(drop)
}

fn pings(host: &mut Host<'_>) -> Result<()> {
    says(host, "ping -c 1 10.0.2.2", 0, &["from 10.0.2.2: number 1", "1 sent, 1 answered"], 5.0)?;
    // One neighbour is looked for in a second.
    host.pass(1.1)?;
    let six = format!("from {ROUTER_SIX}: number 1");
    says(host, &format!("ping -c 1 {ROUTER_SIX}"), 0, &[&six, "1 sent, 1 answered"], 5.0)?;
    says(host, "ping -c 1 web.test", 0, &["from 10.0.2.2: number 1"], 5.0)?;
    host.set_faults(Faults { lost: 100, ..Faults::default() });
    let lost = says(host, "ping -c 1 10.0.2.2", 1, &["number 1: no answer", "1 sent, 0 answered"], 5.0);
    host.set_faults(Faults::default());
    lost.map(drop)
}

/// Serves one connection with this answer, then closes it.
fn serve_once(host: &mut Host<'_>, command: &str, answer: &[u8]) -> Result<(u8, String)> {
    let handle = host.listen(8000)?;
    let from = host.begin(command)?;
    let served = answer_once(host, handle, answer).context(command.to_string());
    let outcome = served.and_then(|()| host.finish(from, 15.0));
    host.drop_socket(handle);
    outcome
}

fn answer_once(host: &mut Host<'_>, handle: SocketHandle, answer: &[u8]) -> Result<()> {
    let mut request = Vec::new();
    host.until(5.0, |host| {
        let socket = host.tcp(handle);
        if socket.can_recv() {
            request.extend(socket.recv(|bytes| (bytes.len(), bytes.to_vec())).context("cannot receive")?);
        }
        Ok(request.ends_with(b"\r\n\r\n").then_some(()))
    })
    .context("no request")?;
    if !request.starts_with(b"GET /it HTTP/1.1\r\nHost: ") {
        bail!("the request is {:?}", String::from_utf8_lossy(&request));
    }
    let mut rest = answer;
    host.until(5.0, |host| {
        let socket = host.tcp(handle);
        if socket.can_send() {
            let count = socket.send_slice(rest).context("cannot send")?;
            rest = &rest[count..];
        }
        if rest.is_empty() {
            socket.close();
        }
        // A client that has heard enough closes before the end.
        Ok((rest.is_empty() && socket.send_queue() == 0 || !socket.is_active()).then_some(()))
    })
}

fn pages(host: &mut Host<'_>) -> Result<()> {
    let mut page = |command: &str, answer: &str, status: u8, parts: &[&str]| {
        let outcome = serve_once(host, command, answer.as_bytes())?;
        expect(command, outcome, status, parts)
    };
    let whole = "HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\nwhole answer";
    page("wget http://10.0.2.2:8000/it", whole, 0, &["whole answer"])?;
    page(&format!("wget http://[{ROUTER_SIX}]:8000/it"), whole, 0, &["whole answer"])?;
    page("wget http://six.test:8000/it", whole, 0, &["whole answer"])?;
    page("wget -O /tmp/it http://web.test:8000/it && cat /tmp/it", whole, 0, &["whole answer"])
        .or_else(|_| page("wget -O /it http://web.test:8000/it && cat /it", whole, 0, &["whole answer"]))?;
    page("wget http://10.0.2.2:8000/it", "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nshort", 1, &["5 of 99 bytes"])?;
    let moved = "HTTP/1.1 301 Moved Permanently\r\nLocation: http://10.0.2.2:8000/that\r\nContent-Length: 0\r\n\r\n";
    page("wget http://10.0.2.2:8000/it", moved, 1, &["301"])?;
    page("wget http://10.0.2.2:8000/it", "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", 1, &["404"])?;
    page("wget http://10.0.2.2:8000/it", "no answer at all\r\n\r\n", 1, &["not an answer"])?;
    page("wget http://10.0.2.2:8000/it", "", 1, &["not an answer"])?;
    page("wget http://10.0.2.2:8000/it", &"x".repeat(20_000), 1, &["not an answer"])?;
    let long = format!("HTTP/1.1 200 OK\r\nContent-Length: 30000\r\n\r\n{}", "0123456789".repeat(3000));
    page("wget -O /long http://10.0.2.2:8000/it; wc -c /long", &long, 0, &["30000"])?;
    // Nobody listens: the machine hears of it at once.
    says(host, "wget http://10.0.2.2:8001/it", 1, &["refused"], 5.0).map(drop)
}

/// Waits for bytes on a connection.
fn receive(host: &mut Host<'_>, handle: SocketHandle, wanted: &[u8]) -> Result<()> {
    let mut came = Vec::new();
    let result = host.until(5.0, |host| {
        let socket = host.tcp(handle);
        if socket.can_recv() {
            came.extend(socket.recv(|bytes| (bytes.len(), bytes.to_vec())).context("cannot receive")?);
        }
        Ok((came.len() >= wanted.len()).then_some(()))
    });
    match result {
        Ok(()) if came == wanted => Ok(()),
        _ => bail!("{:?} came, not {:?}", String::from_utf8_lossy(&came), String::from_utf8_lossy(wanted)),
    }
}

fn netcat(host: &mut Host<'_>) -> Result<()> {
    // From the machine to us.
    let handle = host.listen(9000)?;
    let from = host.begin("nc 10.0.2.2 9000")?;
    host.until(5.0, |host| Ok(host.tcp(handle).may_send().then_some(()))).context("it does not connect")?;
    host.type_text("to the host\r")?;
    receive(host, handle, b"to the host\n")?;
    host.tcp(handle).send_slice(b"to the machine\n").context("cannot send")?;
    host.shows(from, "to the machine", 5.0)?;
    host.tcp(handle).close();
    expect("nc", host.finish(from, 10.0)?, 0, &["to the machine"])?;
    host.drop_socket(handle);
    // From us to the machine.
    let from = host.begin("nc -l 9001")?;
    host.shows(from, "waiting on port 9001", 5.0)?;
    let handle = host.connect(MACHINE.into(), 9001)?;
    host.until(5.0, |host| Ok(host.tcp(handle).may_send().then_some(()))).context("we do not connect")?;
    host.tcp(handle).send_slice(b"from outside\n").context("cannot send")?;
    host.shows(from, "from outside", 5.0)?;
    host.type_text("from inside\r")?;
    receive(host, handle, b"from inside\n")?;
    host.tcp(handle).close();
    expect("nc -l", host.finish(from, 10.0)?, 0, &["connected with 10.0.2.2:", "from outside"])?;
    host.drop_socket(handle);
    Ok(())
}

fn echo(host: &mut Host<'_>) -> Result<()> {
    let socket = host.datagrams(4000);
    for (place, target) in [IpAddr::from(MACHINE), MACHINE_SIX.into(), MACHINE.into()].into_iter().enumerate() {
        for bytes in [0, 1, 8, 1000, 1400] {
            let sent = crate::test::random::Random(bytes as u64 + place as u64).bytes(bytes);
            let to = IpEndpoint::new(IpAddress::from(target), 7);
            // The service starts while we ask: packets sent before it is there are lost.
            let mut next = std::time::Instant::now();
            let back = host.until(6.0, |host| {
                let socket = host.udp(socket);
                if std::time::Instant::now() >= next {
                    socket.send_slice(&sent, to).context("cannot send")?;
                    next = std::time::Instant::now() + std::time::Duration::from_secs(1);
                }
                Ok(socket.recv().ok().map(|(bytes, from)| (bytes.to_vec(), from.endpoint)))
            });
            let (back, from) = back.with_context(|| format!("{bytes} bytes to {target}"))?;
            if back != sent || from != to {
                bail!("{bytes} bytes to {target} came back as {} bytes from {from}", back.len());
            }
        }
    }
    let handle = host.connect(MACHINE.into(), 7)?;
    host.until(5.0, |host| Ok(host.tcp(handle).may_send().then_some(()))).context("no connection")?;
    for _ in 0..20 {
        host.tcp(handle).send_slice(b"and back").context("cannot send")?;
        receive(host, handle, b"and back")?;
    }
    // We have said all, and so has the service.
    host.tcp(handle).close();
    host.until(5.0, |host| Ok(matches!(host.tcp(handle).state(), State::TimeWait | State::Closed).then_some(())))
        .context("the connection does not end")?;
    host.drop_socket(handle);
    Ok(())
}

fn shown(host: &mut Host<'_>) -> Result<()> {
    let parts = [
        "ethernet  52-54-00-12-34-56",
        "2001:db8:0:1:5054:ff:fe12:3456/64",
        "10.0.2.15/24",
        "127.0.0.1/8",
        "::1/128",
        "of 8      programs   3 of 20",
        "connections  components    0 of 2592   programs   0 of 512",
        "listeners    components    1 of 16     programs   2 of 32",
        "of 24     programs   1 of 40",
    ];
    let text = says(host, "ifconfig", 0, &[], 5.0)?;
    if let Some(part) = parts.iter().find(|part| !text.contains(**part)) {
        bail!("ifconfig does not show {part:?}, but {text:?}");
    }
    // The clock's servers are asked now and then, in a session with a port.
    let asks = |count: u64| {
        text.contains(&format!("sessions     components    {} of", 1 + count))
            && text.contains(&format!("ports        components    {count} of"))
    };
    if !asks(0) && !asks(1) {
        bail!("ifconfig shows sessions and ports of other components: {text:?}");
    }
    let handle = host.connect(MACHINE.into(), 7)?;
    host.until(5.0, |host| Ok(host.tcp(handle).may_send().then_some(()))).context("no connection")?;
    let endpoint = host.tcp(handle).local_endpoint().context("no port")?;
    let text = says(host, "netstat", 0, &[], 5.0)?;
    let line = |parts: &[&str]| text.lines().any(|line| parts.iter().all(|part| line.contains(part)));
    let ours = format!("{}:{}", ROUTER, endpoint.port);
    if !line(&["tcp", "listening", " 80 ", " httpd"])
        || !line(&["udp", " 7 ", " echod"])
        || !line(&["tcp", "10.0.2.15:7 ", &ours, " echod"])
    {
        bail!("netstat shows {text:?}, without {ours}");
    }
    host.drop_socket(handle);
    host.until(5.0, |host| {
        let (_, text) = host.shell("netstat", 5.0)?;
        Ok((!text.contains(&ours)).then_some(()))
    })
    .context("a connection that was reset is still shown")
}
