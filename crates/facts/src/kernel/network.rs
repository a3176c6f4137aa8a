//! Data over TCP and UDP, and the connections of TCP.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::fact::Network;
use crate::prelude::*;

/// The meaning of an event: the protocol, and the direction of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetworkAction(&'static str, &'static str);

/// The bytes of an address as text.
fn address(value: &Value) -> String {
    let Value::Bytes(bytes) = value else { return String::new() };
    if let Ok(bytes) = <[u8; 4]>::try_from(bytes.as_slice()) {
        return Ipv4Addr::from(bytes).to_string();
    }
    <[u8; 16]>::try_from(bytes.as_slice()).map_or_else(|_| String::new(), |bytes| Ipv6Addr::from(bytes).to_string())
}

/// Data over TCP and UDP.
#[derive(Debug, Default)]
pub struct Connections;

const TCP: &str = "Windows-Kernel-TcpIp";
const UDP: &str = "Windows-Kernel-UdpIp";

impl Tracker for Connections {
    type Action = NetworkAction;
    const EVENTS: Events<NetworkAction> = &[
        (TCP, "SendIPv4", NetworkAction("tcp", "send")),
        (TCP, "ReceiveIPv4", NetworkAction("tcp", "receive")),
        (TCP, "SendIPv6", NetworkAction("tcp", "send")),
        (TCP, "ReceiveIPv6", NetworkAction("tcp", "receive")),
        (TCP, "ConnectIPv4", NetworkAction("tcp", "connect")),
        (TCP, "ConnectIPv6", NetworkAction("tcp", "connect")),
        (TCP, "AcceptIPv4", NetworkAction("tcp", "accept")),
        (TCP, "AcceptIPv6", NetworkAction("tcp", "accept")),
        (TCP, "DisconnectIPv4", NetworkAction("tcp", "disconnect")),
        (TCP, "DisconnectIPv6", NetworkAction("tcp", "disconnect")),
        (TCP, "RetransmitIPv4", NetworkAction("tcp", "retransmit")),
        (TCP, "RetransmitIPv6", NetworkAction("tcp", "retransmit")),
        (TCP, "ReconnectIPv4", NetworkAction("tcp", "reconnect")),
        (TCP, "ReconnectIPv6", NetworkAction("tcp", "reconnect")),
        (UDP, "SendIPv4", NetworkAction("udp", "send")),
        (UDP, "ReceiveIPv4", NetworkAction("udp", "receive")),
        (UDP, "SendIPv6", NetworkAction("udp", "send")),
        (UDP, "ReceiveIPv6", NetworkAction("udp", "receive")),
    ];

    fn event(&mut self, action: NetworkAction, input: &Input<'_>, _: &mut Shared, sink: &mut impl FactSink) {
        event(action, input, sink);
    }
}

/// An event becomes a row. The system calls the local end of a TCP connection the source in both directions; over UDP
/// the source is the sender. Source: addresses of network cards (`SystemConfig`) in two recordings.
fn event(NetworkAction(protocol, kind): NetworkAction, input: &Input<'_>, sink: &mut impl FactSink) {
    let source_address = address(input.fields.get("SourceAddress"));
    let destination_address = address(input.fields.get("DestinationAddress"));
    let source = (source_address.as_str(), input.number("SourcePort") as u16);
    let destination = (destination_address.as_str(), input.number("DestinationPort") as u16);
    let (local, remote) =
        if (protocol, kind) == ("udp", "receive") { (destination, source) } else { (source, destination) };
    sink.add(&Network {
        protocol,
        kind,
        size_bytes: input.number("Size") as u32,
        local_address: local.0,
        local_port: local.1,
        remote_address: remote.0,
        remote_port: remote.1,
        source_address: source.0,
        source_port: source.1,
        destination_address: destination.0,
        destination_port: destination.1,
        connection_id: input.number("ConnectionId"),
        ..input.row()
    });
}
