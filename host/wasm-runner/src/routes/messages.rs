//! The few messages of rtnetlink(7) that are needed here.

use std::io;
use std::net::IpAddr;

use netlink_packet_core::{NetlinkBuffer, NlasIterator};

// linux/netlink.h
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const NLM_F_REQUEST: u16 = 0x1;
const NLM_F_DUMP: u16 = 0x300;
/// The size of each message's header, in bytes.
const HEAD: usize = 16;
// linux/rtnetlink.h
const RTM_NEWLINK: u16 = 16;
const RTM_GETLINK: u16 = 18;
const RTM_NEWROUTE: u16 = 24;
const RTM_GETROUTE: u16 = 26;
const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
/// The sizes of `struct rtmsg` and `struct ifinfomsg`, in bytes.
const RTMSG: usize = 12;
const IFINFOMSG: usize = 16;
// linux/if_link.h
const IFLA_MASTER: u16 = 10;
const IFLA_LINKINFO: u16 = 18;
const IFLA_INFO_KIND: u16 = 1;
/// A flag of the kind of an attribute that contains others.
const NESTED: u16 = 0x8000;
// linux/socket.h
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;

/// What the kernel does with a packet (`RTN_*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RouteKind {
    Unicast,
    Local,
    /// Broadcast, anycast, multicast.
    Many,
    Other,
}

/// An interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Link {
    /// The kind of a virtual interface, such as `bridge`; `None` for a real one.
    pub(super) kind: Option<String>,
    /// The bridge or other interface that it is a port of.
    pub(super) master: Option<u32>,
}

/// One message of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reply {
    Route {
        kind: RouteKind,
        interface: u32,
    },
    Link {
        index: u32,
        link: Link,
    },
    /// The end of the answer.
    Done,
}

/// Asks for the route to an address. `scope` is the interface of a link-local address, otherwise 0.
pub(super) fn route_to(sequence: u32, address: IpAddr, scope: u32) -> Vec<u8> {
    let (family, bytes) = match address {
        IpAddr::V4(v4) => (AF_INET, v4.octets().to_vec()),
        IpAddr::V6(v6) => (AF_INET6, v6.octets().to_vec()),
    };
    let mut body = vec![0; RTMSG];
    body[0] = family;
    // The requested prefix length: the whole address.
    body[1] = u8::try_from(bytes.len() * 8).unwrap_or(u8::MAX);
    push_attribute(&mut body, RTA_DST, &bytes);
    if scope != 0 {
        push_attribute(&mut body, RTA_OIF, &scope.to_ne_bytes());
    }
    message(RTM_GETROUTE, NLM_F_REQUEST, sequence, &body)
}

/// Asks for all interfaces.
pub(super) fn all_links(sequence: u32) -> Vec<u8> {
    let flags = NLM_F_REQUEST | NLM_F_DUMP;
    message(RTM_GETLINK, flags, sequence, &[0; IFINFOMSG])
}

fn message(kind: u16, flags: u16, sequence: u32, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(HEAD + body.len()).unwrap_or(u32::MAX);
    let mut message = length.to_ne_bytes().to_vec();
    message.extend(kind.to_ne_bytes());
    message.extend(flags.to_ne_bytes());
    message.extend(sequence.to_ne_bytes());
    // The port of the sender, which the kernel knows.
    message.extend(0_u32.to_ne_bytes());
    message.extend(body);
    message
}

/// Values have 4 or 16 bytes here, so no padding is needed.
fn push_attribute(body: &mut Vec<u8>, kind: u16, value: &[u8]) {
    let length = u16::try_from(4 + value.len()).unwrap_or(u16::MAX);
    body.extend(length.to_ne_bytes());
    body.extend(kind.to_ne_bytes());
    body.extend(value);
}

/// Returns the replies in `received` to the request with this number. Nothing follows an error.
pub(super) fn replies(received: &[u8], sequence: u32) -> Vec<io::Result<Reply>> {
    let mut replies = Vec::new();
    let mut rest = received;
    while !rest.is_empty() {
        let Ok(message) = NetlinkBuffer::new_checked(rest) else {
            replies.push(Err(damaged()));
            break;
        };
        if message.sequence_number() == sequence {
            let body = message.payload();
            let reply = match message.message_type() {
                NLMSG_DONE => Some(Ok(Reply::Done)),
                NLMSG_ERROR => Some(error(body)),
                RTM_NEWROUTE => Some(route(body).ok_or_else(damaged)),
                RTM_NEWLINK => Some(link(body).ok_or_else(damaged)),
                _ => None,
            };
            replies.extend(reply);
        }
        // Messages begin at multiples of 4.
        let length = (message.length() as usize).next_multiple_of(4);
        rest = rest.get(length..).unwrap_or_default();
    }
    replies
}

fn damaged() -> io::Error {
    io::Error::other("the kernel's answer cannot be read")
}

fn error(body: &[u8]) -> io::Result<Reply> {
    match number(body) {
        Some(0) => Ok(Reply::Done),
        // A negated errno.
        Some(code) => Err(io::Error::from_raw_os_error(
            code.cast_signed().wrapping_neg(),
        )),
        None => Err(damaged()),
    }
}

fn route(body: &[u8]) -> Option<Reply> {
    let kind = match body.get(7)? {
        1 => RouteKind::Unicast,
        2 => RouteKind::Local,
        3..=5 => RouteKind::Many,
        _ => RouteKind::Other,
    };
    let oif = attributes(body.get(RTMSG..)?).into_iter();
    let mut oif = oif.filter(|(kind, _)| *kind == RTA_OIF);
    // A route that forbids has no interface.
    let interface = oif.find_map(|(_, value)| number(&value)).unwrap_or(0);
    Some(Reply::Route { kind, interface })
}

fn link(body: &[u8]) -> Option<Reply> {
    let index = number(body.get(4..)?)?;
    let mut link = Link {
        kind: None,
        master: None,
    };
    for (kind, value) in attributes(body.get(IFINFOMSG..)?) {
        match kind {
            IFLA_MASTER => link.master = number(&value),
            IFLA_LINKINFO => {
                let kinds = attributes(&value).into_iter();
                let mut kinds = kinds.filter(|(kind, _)| *kind == IFLA_INFO_KIND);
                link.kind = kinds.next().map(|(_, name)| {
                    let name = String::from_utf8_lossy(&name);
                    name.trim_end_matches('\0').to_owned()
                });
            }
            _ => {}
        }
    }
    Some(Reply::Link { index, link })
}

fn attributes(bytes: &[u8]) -> Vec<(u16, Vec<u8>)> {
    let readable = NlasIterator::new(bytes).map_while(Result::ok);
    readable
        .map(|attribute| (attribute.kind() & !NESTED, attribute.value().to_vec()))
        .collect()
}

/// Reads the first four bytes, in the byte order of this processor.
fn number(bytes: &[u8]) -> Option<u32> {
    let bytes = bytes.first_chunk()?;
    Some(u32::from_ne_bytes(*bytes))
}
