//! The packet loop's side of the shards: which session each shard has, and the commands about what
//! has changed. Shard 0 is the packet loop; sessions with a write cache, or of a version in
//! maintenance, always stay there (docs/decisions/0022-stream-shards.md).

const std = @import("std");
const base = @import("base");
const core = @import("core");
const shard_messages = @import("shard_messages.zig");
const steering = @import("steering.zig");
const sys = @import("../sys.zig");
const Boots = @import("../edge_io.zig").Agent.Boots;
const StreamShard = @import("shard.zig");
const PiecePacker = @import("piece_packer.zig");
const UdpSocket = @import("../net/udp_socket.zig");
const linux = std.os.linux;

const Session = core.stream.Server.Session;
const StreamServer = core.stream.Server;

/// It is not known whether one network card gains from more.
pub const shards_max = 16;

/// One core is left to the rest: the kernel's receive path, boots, downloads and the store.
pub fn shardCount(cores: usize) u16 {
    return @intCast(std.math.clamp(cores -| 1, 1, shards_max));
}

pub const StreamShards = @This();

/// Without shard 0.
shards: []*StreamShard,
/// The state of a session that its shard knows, by the slot of the session.
known: []KnownSession,
/// The `StreamServer.changes` that the shards know of.
known_changes: u64 = 0,
/// Shards have something for the packet loop.
wake_fd: i32,

/// `id` 0: none. A session of shard 0 is unknown to the others.
const KnownSession = struct {
    id: u64 = 0,
    from: base.Endpoint = .{ .ip = .zero, .port = 0 },
    packet_size_max: u16 = 0,
    shard: u16 = 0,
};

pub const InitError = StreamShard.InitError;

/// `open` are the sockets of shards 1 and on.
pub fn init(
    gpa: std.mem.Allocator,
    open: []UdpSocket,
    options: StreamServer.Options,
    packer: ?*PiecePacker,
) InitError!StreamShards {
    var shard_options: StreamShard.Options = .{};
    shard_options.reads.packer = packer;
    const wake_fd: i32 = @intCast(sys.check(
        linux.eventfd(0, linux.EFD.NONBLOCK | linux.EFD.CLOEXEC),
    ) catch return error.SystemCallFailed);
    const shards = try gpa.alloc(*StreamShard, open.len);
    for (shards, open) |*shard, *socket| {
        shard.* = try gpa.create(StreamShard);
        shard.*.* = try .init(gpa, try .init(gpa, options), socket, wake_fd, shard_options);
    }
    const known = try gpa.alloc(KnownSession, options.sessions_max);
    @memset(known, .{});
    return .{ .shards = shards, .known = known, .wake_fd = wake_fd };
}

pub fn start(shards: *StreamShards) std.Thread.SpawnError!void {
    for (shards.shards) |shard| try shard.start();
}

pub fn stop(shards: *StreamShards) void {
    for (shards.shards) |shard| shard.stop();
}

/// Returns whether a shard cannot continue: its devices would wait for ever.
pub fn hasFailed(shards: *const StreamShards) bool {
    for (shards.shards) |shard| if (shard.has_failed.load(.acquire)) return true;
    return false;
}

/// Called before the rings are drained: what comes later wakes the packet loop again.
pub fn clearWake(shards: *const StreamShards) void {
    var count: u64 = undefined;
    _ = linux.read(shards.wake_fd, @ptrCast(&count), 8);
}

/// Called after anything that may have changed a session. If a shard's ring is full, a later
/// call sends the rest.
pub fn sync(shards: *StreamShards, server: *StreamServer, boots: *Boots) void {
    if (server.changes == shards.known_changes) return;
    var is_all = true;
    var slots = server.changed_slots.iterate();
    while (slots.next()) |slot| {
        if (shards.tell(&server.sessions[slot], &shards.known[slot], boots))
            server.changed_slots.unset(slot)
        else
            is_all = false;
    }
    if (is_all) shards.known_changes = server.changes;
}

/// Returns false if a shard's ring is full.
fn tell(
    shards: *StreamShards,
    session: *const Session,
    known: *KnownSession,
    boots: *Boots,
) bool {
    const is_same = session.id == known.id;
    if (is_same and (session.id == 0 or (session.from.eql(known.from) and
        session.packet_size_max == known.packet_size_max))) return true;
    if (!is_same and known.id != 0 and known.shard != 0)
        if (!shards.post(known.shard, .{ .drop = known.id })) return false;
    if (!is_same) known.* = .{};
    return session.id == 0 or shards.assign(session, known, boots);
}

fn assign(
    shards: *StreamShards,
    session: *const Session,
    known: *KnownSession,
    boots: *Boots,
) bool {
    const shard = steering.shardOf(session.mark, @intCast(shards.shards.len + 1));
    const next: KnownSession = .{
        .id = session.id,
        .from = session.from,
        .packet_size_max = session.packet_size_max,
        .shard = shard,
    };
    const version = boots.io.findVersion(session.version_id);
    const is_plain = session.write_cache.class == .device_ram and version != null and
        version.?.layer_above == null;
    if (shard != 0 and is_plain) {
        if (shards.shards[shard - 1].commands.reserve() == null) return false;
        // Without a descriptor the session stays with shard 0.
        const disk = version.?.disk.copy() catch return false;
        _ = shards.post(shard, .{ .adopt = .{ .session = session.*, .disk = disk } });
    }
    known.* = next;
    if (!is_plain) known.shard = 0;
    return true;
}

fn post(shards: *StreamShards, number: u16, command: shard_messages.Command) bool {
    const shard = shards.shards[number - 1];
    const slot = shard.commands.reserve() orelse return false;
    slot.* = command;
    shard.commands.commit();
    StreamShard.wake(shard.wake_fd);
    return true;
}

test "an edge leaves one core to what is not the stream, and has at least one shard" {
    const testing = std.testing;
    for ([_][2]usize{ .{ 0, 1 }, .{ 1, 1 }, .{ 2, 1 }, .{ 4, 3 }, .{ 64, shards_max } }) |pair|
        try testing.expectEqual(pair[1], shardCount(pair[0]));
}
