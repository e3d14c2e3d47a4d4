//! The packet loop's side of the lanes: which session is whose, and letters about what has changed. Lane 0 is the packet loop; sessions with
//! a write cache, or of a version that is written yet, are always its own (docs/decisions/0022-stream-lanes.md).

const std = @import("std");
const base = @import("base");
const core = @import("core");
const read_event = @import("read_event.zig");
const lane_steering = @import("steering.zig");
const sys = @import("../sys.zig");
const Boots = @import("../boots/boots.zig").Boots;
const StreamLane = @import("shard.zig").StreamLane;
const UdpSocket = @import("../net/udp_socket.zig").UdpSocket;
const linux = std.os.linux;

const Session = core.stream.Server.Session;
const StreamServer = core.stream.Server;

/// What one card can be given by more is not known.
pub const lanes_max = 16;

/// One core is left to what is not the stream's: the kernel that receives, boots, downloads, the store.
pub fn lanesFor(cores: usize) u16 {
    return @intCast(std.math.clamp(cores -| 1, 1, lanes_max));
}

pub const StreamLanes = struct {
    /// Without lane 0.
    lanes: []*StreamLane,
    /// By the place of a session, what its lane knows.
    told: []Told,
    /// `StreamServer.changes` that the lanes know of.
    known_changes: u64 = 0,
    /// Lanes have something for the packet loop.
    wake_fd: i32,

    /// `id` 0: nothing. A session of lane 0 is told to nobody.
    const Told = struct { id: u64 = 0, from: base.Endpoint = .{ .ip = .zero, .port = 0 }, packet_size_max: u16 = 0, lane: u16 = 0 };

    pub const InitError = StreamLane.InitError;

    /// `open` are the sockets of lanes 1 and on.
    pub fn init(gpa: std.mem.Allocator, open: []UdpSocket, options: StreamServer.Options, lane_options: StreamLane.Options) InitError!StreamLanes {
        const wake_fd: i32 = @intCast(sys.check(linux.eventfd(0, linux.EFD.NONBLOCK | linux.EFD.CLOEXEC)) catch return error.SystemCallFailed);
        const lanes = try gpa.alloc(*StreamLane, open.len);
        for (lanes, open) |*lane, *socket| {
            lane.* = try gpa.create(StreamLane);
            lane.*.* = try .init(gpa, try .init(gpa, options), socket, wake_fd, lane_options);
        }
        const told = try gpa.alloc(Told, options.sessions_max);
        @memset(told, .{});
        return .{ .lanes = lanes, .told = told, .wake_fd = wake_fd };
    }

    pub fn start(lanes: *StreamLanes) std.Thread.SpawnError!void {
        for (lanes.lanes) |lane| try lane.start();
    }

    pub fn stop(lanes: *StreamLanes) void {
        for (lanes.lanes) |lane| lane.stop();
    }

    /// One of them cannot go on: its devices would wait for ever.
    pub fn hasFailed(lanes: *const StreamLanes) bool {
        for (lanes.lanes) |lane| if (lane.has_failed.load(.acquire)) return true;
        return false;
    }

    /// Before what they have given is looked at: what comes later wakes the packet loop again.
    pub fn beginHearing(lanes: *const StreamLanes) void {
        var count: u64 = undefined;
        _ = linux.read(lanes.wake_fd, @ptrCast(&count), 8);
    }

    /// After anything that may have changed a session. What finds a lane's mail full is told by a later call.
    pub fn tell(lanes: *StreamLanes, server: *StreamServer, boots: *Boots) void {
        if (server.changes == lanes.known_changes) return;
        var is_all = true;
        for (server.sessions, lanes.told) |*session, *told| {
            const is_same = session.id == told.id;
            if (is_same and (session.id == 0 or (session.from.eql(told.from) and session.packet_size_max == told.packet_size_max))) continue;
            if (!is_same and told.id != 0 and told.lane != 0) {
                if (!lanes.write(told.lane, .{ .drop = told.id })) {
                    is_all = false;
                    continue;
                }
            }
            if (!is_same) told.* = .{};
            if (session.id == 0) continue;
            if (!lanes.give(session, told, boots)) is_all = false;
        }
        if (is_all) lanes.known_changes = server.changes;
    }

    fn give(lanes: *StreamLanes, session: *const Session, told: *Told, boots: *Boots) bool {
        const lane = lane_steering.laneOf(session.mark, @intCast(lanes.lanes.len + 1));
        const next: Told = .{ .id = session.id, .from = session.from, .packet_size_max = session.packet_size_max, .lane = lane };
        const version = boots.versions.find(session.version_id);
        const is_plain = session.write_cache.class == .device_ram and version != null and version.?.layer_above == null;
        if (lane != 0 and is_plain) {
            const letter_box = &lanes.lanes[lane - 1].mail;
            if (letter_box.room() == null) return false;
            // Without a descriptor it stays with lane 0.
            const disk = version.?.disk.copy() catch return false;
            _ = lanes.write(lane, .{ .adopt = .{ .session = session.*, .disk = disk } });
        }
        told.* = next;
        if (!is_plain) told.lane = 0;
        return true;
    }

    fn write(lanes: *StreamLanes, number: u16, mail: read_event.Mail) bool {
        const lane = lanes.lanes[number - 1];
        const place = lane.mail.room() orelse return false;
        place.* = mail;
        lane.mail.give();
        StreamLane.wake(lane.wake_fd);
        return true;
    }
};

test "an edge leaves a core to what is not the stream's, and has one lane at least" {
    const testing = std.testing;
    for ([_][2]usize{ .{ 0, 1 }, .{ 1, 1 }, .{ 2, 1 }, .{ 4, 3 }, .{ 64, lanes_max } }) |pair|
        try testing.expectEqual(pair[1], lanesFor(pair[0]));
}
