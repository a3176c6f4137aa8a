//! Values as the text that their description means them to be shown as.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV4, SocketAddrV6};

use crate::reader::Shown;

/// Address families of Windows.
const AF_INET: u16 = 2;
const AF_INET6: u16 = 23;

/// The text of a value; `None` when its bytes are no such thing.
pub fn text(shown: Shown, value: &[u8]) -> Option<String> {
    match shown {
        Shown::Ipv4 => Some(Ipv4Addr::from(<[u8; 4]>::try_from(value).ok()?).to_string()),
        Shown::Ipv6 => Some(Ipv6Addr::from(<[u8; 16]>::try_from(value).ok()?).to_string()),
        Shown::SocketAddress => socket_address(value),
        Shown::Hex => {
            let mut bytes = [0; 8];
            bytes.get_mut(..value.len())?.copy_from_slice(value);
            Some(format!("{:#x}", u64::from_le_bytes(bytes)))
        }
    }
}

/// u16 family, u16 port in network order; of IPv4 4 bytes of address, of IPv6 u32 flow, 16 bytes of address, u32 scope.
/// Source: `SOCKADDR_IN` and `SOCKADDR_IN6` of the SDK.
fn socket_address(value: &[u8]) -> Option<String> {
    let (family, rest) = value.split_first_chunk()?;
    let (port, rest) = rest.split_first_chunk()?;
    let port = u16::from_be_bytes(*port);
    match u16::from_le_bytes(*family) {
        AF_INET => {
            let address = *rest.first_chunk::<4>()?;
            Some(SocketAddrV4::new(address.into(), port).to_string())
        }
        AF_INET6 => {
            let (_flow, rest) = rest.split_first_chunk::<4>()?;
            let (address, rest) = rest.split_first_chunk::<16>()?;
            let scope = rest.first_chunk().map_or(0, |scope| u32::from_le_bytes(*scope));
            Some(SocketAddrV6::new((*address).into(), port, 0, scope).to_string())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_numbers_have_their_usual_form() {
        assert_eq!(text(Shown::Ipv4, &[10, 0, 0, 7]).as_deref(), Some("10.0.0.7"));
        let mut local = [0; 16];
        (local[0], local[1], local[15]) = (0xFE, 0x80, 1);
        assert_eq!(text(Shown::Ipv6, &local).as_deref(), Some("fe80::1"));
        let four = [&[2, 0, 1, 0xBB, 10, 0, 0, 7][..], &[0; 8]].concat();
        assert_eq!(text(Shown::SocketAddress, &four).as_deref(), Some("10.0.0.7:443"));
        let six = [&[23, 0, 1, 0xBB, 9, 9, 9, 9][..], &local, &[2, 0, 0, 0]].concat();
        assert_eq!(text(Shown::SocketAddress, &six).as_deref(), Some("[fe80::1%2]:443"));
        assert_eq!(text(Shown::Hex, &0x8007_0005u32.to_le_bytes()).as_deref(), Some("0x80070005"));
        assert_eq!(text(Shown::Hex, &[0x1F]).as_deref(), Some("0x1f"));
    }

    #[test]
    fn other_bytes_have_no_text() {
        for shown in [Shown::Ipv4, Shown::Ipv6, Shown::SocketAddress] {
            for length in [0, 1, 3, 5, 7, 15, 17, 23] {
                assert_eq!(text(shown, &vec![2; length]), None, "{shown:?} of {length} bytes");
            }
        }
        assert_eq!(text(Shown::SocketAddress, &[1; 28]), None, "a family that is none of these");
        assert_eq!(text(Shown::Hex, &[1; 9]), None);
    }
}
