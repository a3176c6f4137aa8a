//! Tables of the kernel's events against the text that TraceEvent made of the same recording; what that recording does
//! not have is written here.

use std::io::{BufRead, BufReader};
use std::path::Path;

use super::writer::*;
use crate::support::dataset::Dataset;
use crate::support::expected::shared_folder;

const TRACE: &str = "net.4.5.2.x64";

/// What TraceEvent says of one kind of event: how many there are, and the fields of the first ones.
fn reported(folder: &Path, event: &str) -> (usize, Vec<String>) {
    let file = std::fs::File::open(folder.join(format!("{TRACE}.traceevent-baseline.txt.gz"))).expect("a baseline");
    let (mut count, mut first) = (0, Vec::new());
    for line in BufReader::new(flate2::read::MultiGzDecoder::new(file)).lines().map(Result::unwrap) {
        if let Some((_, fields)) = line.split_once(&format!(": Windows Kernel/{event} ")) {
            first.push(fields.to_owned());
        } else if let Some(number) = line.strip_prefix(&format!("COUNT Windows Kernel/{event}:")) {
            count = number.parse().unwrap();
        }
    }
    assert!(!first.is_empty() && count >= first.len(), "{event}");
    (count, first)
}

/// The value of a field in such a line, without the commas of numbers.
fn field<'l>(line: &'l str, name: &str) -> &'l str {
    let start = line.find(&format!(" {name}=")).unwrap_or_else(|| panic!("{line}: no {name}")) + name.len() + 2;
    line[start..].split(';').next().unwrap()
}

/// The process: the first field of all.
fn pid(line: &str) -> &str {
    let (_, rest) = line.split_once("PID=").expect("a process");
    rest.split(';').next().unwrap()
}

fn number(text: &str) -> u64 {
    let text = text.replace(',', "");
    let hex = text.strip_prefix("0x").map(|hex| u64::from_str_radix(hex, 16));
    hex.unwrap_or_else(|| text.parse()).unwrap_or_else(|_| panic!("{text}"))
}

/// Milliseconds to three digits, as TraceEvent prints them.
fn is_ms(ns: i64, text: &str) -> bool {
    let ms: f64 = text.replace(',', "").parse().unwrap();
    (ns as f64 / 1e6 - ms).abs() < 0.0006
}

#[test]
fn disks_and_page_faults_are_those_of_traceevent() {
    let Some(folder) = shared_folder("disks_and_page_faults_are_those_of_traceevent", "etl") else { return };
    let dataset = Dataset::of(&folder.join(format!("{TRACE}.etl")));
    let file = dataset.table("file");
    let paths: std::collections::HashMap<u64, String> =
        file.numbers("file_key").into_iter().zip(file.texts("path")).collect();
    // TraceEvent's names have a drive letter, and an ellipsis where they are long.
    let is_named = |key: u64, line: &str| {
        let shown = field(line, "FileName").trim_end_matches("...");
        let (_, path) = shown.split_once(":\\").unwrap_or(("", shown));
        path.is_empty() || paths.get(&key).is_some_and(|known| known.contains(path.trim_end_matches('"')))
    };

    let disk = dataset.table("disk_io");
    let [size, place, key, process, thread] =
        ["size_bytes", "byte_offset", "file_key", "process_id", "thread_id"].map(|name| disk.numbers(name));
    let (duration, end, kind) = (disk.signed("duration_ns"), disk.signed("end_ts_ns"), disk.texts("kind"));
    for (event, own) in [("DiskIO/Read", "read"), ("DiskIO/Write", "write")] {
        let mut rows: Vec<usize> = (0..disk.rows()).filter(|row| kind[*row] == own).collect();
        rows.sort_by_key(|row| end[*row]);
        let (count, first) = reported(&folder, event);
        assert_eq!(rows.len(), count, "{event}");
        for (row, line) in rows.into_iter().zip(&first) {
            assert_eq!(size[row], number(field(line, "TransferSize")), "{line}");
            assert_eq!(place[row], number(field(line, "ByteOffset")), "{line}");
            assert_eq!(key[row], number(field(line, "FileKey")), "{line}");
            assert_eq!((process[row], thread[row]), (number(pid(line)), number(field(line, "TID"))), "{line}");
            assert!(is_ms(duration[row].unwrap(), field(line, "ElapsedTimeMSec")), "{:?} {line}", duration[row]);
            assert!(is_named(key[row], line), "{:?} {line}", paths.get(&key[row]));
        }
    }
    // Every file that was read or written has a name in this recording.
    assert!(key.iter().all(|key| *key == 0 || paths.contains_key(key)));

    let (count, expected) = reported(&folder, "Memory/HardFault");
    let faults = dataset.table("page_fault");
    let [address, offset, key, size, thread] =
        ["address", "file_offset", "file_key", "size_bytes", "thread_id"].map(|name| faults.numbers(name));
    let (duration, end) = (faults.signed("duration_ns"), faults.signed("end_ts_ns"));
    let mut rows: Vec<usize> = (0..faults.rows()).collect();
    rows.sort_by_key(|row| end[*row]);
    assert_eq!(rows.len(), count);
    for (row, line) in rows.into_iter().zip(&expected) {
        assert_eq!(address[row], number(field(line, "VirtualAddress")), "{line}");
        assert_eq!(offset[row], number(field(line, "ReadOffset")), "{line}");
        assert_eq!(key[row], number(field(line, "FileKey")), "{line}");
        assert_eq!(size[row], number(field(line, "ByteCount")), "{line}");
        assert_eq!(thread[row], number(field(line, "TID")), "{line}");
        assert!(is_ms(duration[row].unwrap(), field(line, "ElapsedTimeMSec")), "{:?} {line}", duration[row]);
        assert!(is_named(key[row], line), "{:?} {line}", paths.get(&key[row]));
    }
}

#[test]
fn the_network_is_that_of_traceevent() {
    let Some(folder) = shared_folder("the_network_is_that_of_traceevent", "etl") else { return };
    let dataset = Dataset::of(&folder.join(format!("{TRACE}.etl")));
    let table = dataset.table("network");
    let [size, process, source_port, destination_port] =
        ["size_bytes", "process_id", "source_port", "destination_port"].map(|name| table.numbers(name));
    let (protocol, kind) = (table.texts("protocol"), table.texts("kind"));
    let (source, destination) = (table.texts("source_address"), table.texts("destination_address"));
    let mut checked = 0;
    let (v4, v6) = ("", "V6");
    for (event, own, version) in [
        ("TcpIp/SendIPV6", ("tcp", "send"), v6),
        ("TcpIp/RecvIPV6", ("tcp", "receive"), v6),
        ("UdpIp/Send", ("udp", "send"), v4),
        ("UdpIp/Recv", ("udp", "receive"), v4),
        ("UdpIp/SendIPV6", ("udp", "send"), v6),
        ("UdpIp/RecvIPV6", ("udp", "receive"), v6),
    ] {
        let is_own = |row: &usize| {
            (protocol[*row].as_str(), kind[*row].as_str()) == own && source[*row].contains(':') == (version == v6)
        };
        let rows: Vec<usize> = (0..table.rows()).filter(is_own).collect();
        let (count, first) = reported(&folder, event);
        assert_eq!(rows.len(), count, "{event}");
        for (row, line) in rows.into_iter().zip(&first) {
            assert_eq!(process[row], number(pid(line)), "{line}");
            assert_eq!(size[row], number(field(line, "size")), "{line}");
            assert_eq!(source_port[row], number(field(line, "sport")), "{line}");
            assert_eq!(destination_port[row], number(field(line, "dport")), "{line}");
            // UDP over IPv6 is printed without addresses.
            for (name, address) in [("saddr", &source[row]), ("daddr", &destination[row])] {
                if line.contains(&format!(" {name}=")) {
                    let shown = field(line, name).trim_end_matches("...");
                    assert!(address.starts_with(shown), "{address} {line}");
                    checked += 1;
                }
            }
        }
    }
    assert!(checked >= 20, "{checked}");

    // The log says which addresses the machine has: those of its network cards.
    let own = [
        "2001:4898:f0:26:950:d6de:fa84:4cc0",
        "2001:4898:f0:26:b18e:e85f:db5d:8e8",
        "fe80::950:d6de:fa84:4cc0",
        "10.128.0.55",
        "::1",
        "127.0.0.1",
    ];
    let (local, remote) = (table.texts("local_address"), table.texts("remote_address"));
    let [local_port, remote_port] = ["local_port", "remote_port"].map(|name| table.numbers(name));
    let is_of_all =
        |address: &str| address.starts_with("ff02::") || address.starts_with("2") || address == "10.128.3.255";
    let (mut received, mut turned) = (0, 0);
    for row in 0..table.rows() {
        let (protocol, kind) = (protocol[row].as_str(), kind[row].as_str());
        let is_own =
            own.contains(&local[row].as_str()) || (protocol == "udp" && kind == "receive" && is_of_all(&local[row]));
        assert!(is_own, "{protocol} {kind} {} {}", local[row], remote[row]);
        let is_loopback = remote[row] == "::1" || remote[row] == "10.128.0.55";
        assert!(protocol == "udp" || (!own.contains(&remote[row].as_str()) && !is_loopback), "{}", remote[row]);
        let ends = [(&source[row], source_port[row]), (&destination[row], destination_port[row])];
        let is_turned = (&local[row], local_port[row]) != ends[0];
        let (own_end, other) = if is_turned { (ends[1], ends[0]) } else { (ends[0], ends[1]) };
        assert_eq!(((&local[row], local_port[row]), (&remote[row], remote_port[row])), (own_end, other));
        received += u32::from(kind == "receive");
        turned += u32::from(is_turned);
    }
    // 250 segments and 29 datagrams were received.
    assert_eq!((received, turned), (279, 29));
}

/// Groups of the kernel's events.
const TCP: u8 = 0x06;
const UDP: u8 = 0x08;

/// Both ends of a connection, as they lie in an event: the other machine's address, the own one, their ports in network
/// order.
fn ends(is_v6: bool) -> Vec<u8> {
    let mut out = Vec::new();
    for last in [7, 8] {
        match is_v6 {
            false => out.extend([10, 0, 0, last]),
            true => out.extend([0xFE, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]),
        }
    }
    out.extend([443u16, 50_001].map(u16::to_be_bytes).concat());
    out
}

/// The log of `the_network_is_that_of_traceevent` has no connection that begins or ends, and no data over TCP on IPv4.
#[test]
fn connections_and_data_on_both_versions_of_ip_have_their_rows() {
    // What lies behind the ports: times, or the options of a connection; then the sequence number and the connection.
    let behind = |bytes: usize| [vec![0xEE; bytes], 9u32.to_le_bytes().to_vec()].concat();
    let kinds = [
        (TCP, "send", 10, behind(8)),
        (TCP, "receive", 11, behind(0)),
        (TCP, "connect", 12, behind(16)),
        (TCP, "disconnect", 13, behind(0)),
        (TCP, "retransmit", 14, behind(0)),
        (TCP, "accept", 15, behind(16)),
        (TCP, "reconnect", 16, behind(0)),
        (UDP, "send", 10, behind(0)),
        (UDP, "receive", 11, behind(0)),
    ];
    let (mut events, mut expected) = (Vec::new(), Vec::new());
    for is_v6 in [false, true] {
        for (group, kind, opcode, behind) in &kinds {
            let number = events.len() as u32;
            let payload = [
                [50, 1000 + number].map(u32::to_le_bytes).concat(),
                ends(is_v6),
                behind.clone(),
                (0xFFFF_A000_0000_0000 + u64::from(number)).to_le_bytes().to_vec(),
            ];
            let opcode = opcode + if is_v6 { 16 } else { 0 };
            events.push(system(*group, opcode, 2, TICKS + i64::from(number), &payload.concat()));
            let [other, own] = if is_v6 { ["fe80::7", "fe80::8"] } else { ["10.0.0.7", "10.0.0.8"] };
            let (destination, source) = ((other.to_owned(), 443), (own.to_owned(), 50_001));
            // Over UDP the source is the sender, whichever machine that is.
            let is_turned = (*group, *kind) == (UDP, "receive");
            let (local, remote) = if is_turned { (&destination, &source) } else { (&source, &destination) };
            let protocol = if *group == TCP { "tcp" } else { "udp" };
            let ends = [local.clone(), remote.clone(), source.clone(), destination.clone()];
            let numbers = [50, 1000 + u64::from(number), 0xFFFF_A000_0000_0000 + u64::from(number)];
            expected.push((i64::from(number) * 100, protocol.to_owned(), (*kind).to_owned(), ends, numbers));
        }
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("written.etl");
    std::fs::write(&path, Writer::file(&events)).expect("room");
    let dataset = Dataset::of(&path);
    let table = dataset.table("network");
    let (times, protocols, kinds) = (table.signed("ts_ns"), table.texts("protocol"), table.texts("kind"));
    let numbers = ["process_id", "size_bytes", "connection_id"].map(|column| table.numbers(column));
    let ends = ["local", "remote", "source", "destination"]
        .map(|end| (table.texts(&format!("{end}_address")), table.numbers(&format!("{end}_port"))));
    let row = |row: usize| {
        let ends = ends.each_ref().map(|(addresses, ports)| (addresses[row].clone(), ports[row]));
        let numbers = numbers.each_ref().map(|column| column[row]);
        (times[row].unwrap(), protocols[row].clone(), kinds[row].clone(), ends, numbers)
    };
    assert_eq!((0..table.rows()).map(row).collect::<Vec<_>>(), expected);
    assert_eq!(expected.len(), 18);
    // The header of the file is kept raw, nothing else is.
    assert_eq!(dataset.problems(), [("raw_payload", 1)]);
}
