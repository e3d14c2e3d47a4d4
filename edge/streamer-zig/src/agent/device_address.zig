//! Judges whether a peer may be the device that it asks for: the kernel's neighbour table says which
//! MAC address has the peer's address on an attached network. Whoever can forge ARP on that network
//! deceives it. An address without an entry (loopback, networks behind routers) is not judged.

const base = @import("base");
const core = @import("core");
const mutants = @import("mutants.zig");

/// Returns whether the neighbour table names another machine than this one. `boots` is a
/// `*Boots(Io)`; the refusal is counted.
pub fn isOfAnother(boots: anytype, peer: base.Ip4, mac: base.Mac) bool {
    if (mutants.has(.script_for_strangers)) return false;
    const known = boots.io.neighbour(peer) orelse return false;
    if (known.eql(mac)) return false;
    boots.ignored.add(.http_stranger);
    return true;
}
