//! The edges of the site as the desired state names them, for the threads that move differences
//! between them. The packet loop sets them; the threads take copies.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const wire = @import("wire");
const Site = core.site.Edges;

pub const SitePeers = @This();

io: std.Io,
mutex: std.Io.Mutex = .init,
site: ?Site = null,
/// Grows with each change.
generation: u64 = 0,
/// Devices in the middle of a boot: they come first.
booting: std.atomic.Value(u32) = .init(0),
/// Bytes of differences since the start; those that were sent or got twice count twice.
moved: [moves]std.atomic.Value(u64) = @splat(.init(0)),

pub const Move = enum { to_edge, from_edge, to_control_plane, from_control_plane };
const moves = @typeInfo(Move).@"enum".field_names.len;
pub const Moved = [moves]u64;

pub fn count(peers: *SitePeers, move: Move, bytes: u64) void {
    _ = peers.moved[@backingInt(move)].fetchAdd(bytes, .monotonic);
}

pub fn movedBytes(peers: *const SitePeers) Moved {
    var result: Moved = undefined;
    for (&result, &peers.moved) |*bytes, *moved| bytes.* = moved.load(.monotonic);
    return result;
}

/// Null: there are no other edges.
pub fn set(peers: *SitePeers, site: ?Site) void {
    peers.mutex.lockUncancelable(peers.io);
    defer peers.mutex.unlock(peers.io);
    peers.site = if (site) |*known| if (known.edges.count > 1) known.* else null else null;
    peers.generation += 1;
}

pub const Current = struct { site: ?Site, generation: u64 };

/// Returns null if nothing has changed since that generation.
pub fn after(peers: *SitePeers, generation: u64) ?Current {
    peers.mutex.lockUncancelable(peers.io);
    defer peers.mutex.unlock(peers.io);
    if (peers.generation == generation) return null;
    return .{ .site = peers.site, .generation = peers.generation };
}

pub fn current(peers: *SitePeers) ?Site {
    peers.mutex.lockUncancelable(peers.io);
    defer peers.mutex.unlock(peers.io);
    return peers.site;
}

/// How one edge of the site is reached.
pub const Route = struct {
    key: wire.peer_transfer.Key,
    own_id: base.Uuid,
    /// The other edge knows this one by it.
    own_ip: ?base.Ip4,
    to: base.Endpoint,
};

/// Returns null if the state names no such other edge, or not where it is.
pub fn routeTo(peers: *SitePeers, id: base.Uuid) ?Route {
    peers.mutex.lockUncancelable(peers.io);
    defer peers.mutex.unlock(peers.io);
    const site = if (peers.site) |*site| site else return null;
    const index = site.indexOf(id) orelse return null;
    if (index == site.own_index) return null;
    return .{
        .key = site.transfer_key,
        .own_id = site.own_id,
        .own_ip = if (site.own().endpoint) |own| own.ip else null,
        .to = site.edges.buffer[index].endpoint orelse return null,
    };
}
