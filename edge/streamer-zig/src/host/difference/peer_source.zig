//! Gets lists and pieces of differences, and content of versions, from other edges of the site
//! (packages/proto/PEERS.md, "Transfers"), over one connection at a time, which is kept while one
//! edge is asked. Wrong bytes in a record that opens are that edge's; everything else that goes
//! wrong may be the network's.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const wire = @import("wire").peer_transfer;
const sys = @import("../sys.zig");
const SitePeers = @import("site_peers.zig");
const TransferThread = @import("transfer_thread.zig");
const linux = std.os.linux;
const Outcome = core.difference.FetchPlan.Outcome;
const nowMs = TransferThread.nowMs;

pub const PeerSource = @This();

/// How long an edge is waited for.
pub const Limits = struct {
    greeting_ms: u64 = core.difference.ServingSession.greeting_limit_ms,
    /// The edge that answers may send to others, and at a limited rate.
    record_ms: u64 = 15_000,
};
const wait_step_ms = 200;

/// Null: nobody abandons it.
thread: ?*const TransferThread = null,
peers: *SitePeers,
limits: Limits = .{},
connection: ?Connection = null,
record: [wire.record_size_max]u8 = undefined,

const Connection = struct { edge: base.Uuid, fd: i32, session: wire.Session };

/// `Broken`: no connection, or no answer in time.
const Error = error{ Broken, Wrong };

pub fn deinit(source: *PeerSource) void {
    source.drop();
    source.* = undefined;
}

/// Ends the connection that is kept.
pub fn drop(source: *PeerSource) void {
    const connection = source.connection orelse return;
    sys.close(connection.fd);
    source.connection = null;
}

/// Fills `buffer` with what an edge has.
pub fn get(
    source: *PeerSource,
    edge: base.Uuid,
    request: wire.Request,
    buffer: []u8,
) Outcome {
    return source.exchange(edge, request, buffer, null) catch |err| source.outcomeOf(err);
}

/// Like `get`, of content whose size is not known; sets it.
pub fn getSome(
    source: *PeerSource,
    edge: base.Uuid,
    request: wire.Request,
    buffer: []u8,
    size: *usize,
) Outcome {
    return source.exchange(edge, request, buffer, size) catch |err| source.outcomeOf(err);
}

fn outcomeOf(source: *PeerSource, problem: Error) Outcome {
    source.drop();
    return switch (problem) {
        error.Broken => .unreachable_source,
        error.Wrong => .wrong,
    };
}

/// `some`: gets the size of the content, which may be smaller than the room for it. Null: it fills
/// the room.
fn exchange(
    source: *PeerSource,
    edge: base.Uuid,
    request: wire.Request,
    room: []u8,
    some: ?*usize,
) Error!Outcome {
    var buffer = room;
    if (source.connection) |*kept| if (!kept.edge.eql(edge)) source.drop();
    if (source.connection == null) try source.connect(edge);
    const connection = &source.connection.?;
    var bytes: wire.RequestBytes = undefined;
    const text = wire.emitRequest(request, &bytes);
    const asked = connection.session.asking.seal(text, &source.record);
    try source.sendAll(asked, nowMs() + source.limits.record_ms);
    switch (try source.receiveAnswer()) {
        .absence => |why| return switch (why) {
            .unknown => .unknown,
            .absent => .absent,
            .damaged => .refused,
        },
        .content => |size| {
            if (size > buffer.len or (some == null and size != buffer.len)) return error.Wrong;
            buffer = buffer[0..size];
            if (some) |told| told.* = size;
        },
        .part => return error.Wrong,
    }
    var size: usize = 0;
    while (size < buffer.len) switch (try source.receiveAnswer()) {
        .part => |part| {
            if (part.len > buffer.len - size) return error.Wrong;
            @memcpy(buffer[size..][0..part.len], part);
            source.peers.count(.from_edge, part.len);
            size += part.len;
        },
        .content, .absence => return error.Wrong,
    };
    return .taken;
}

fn receiveAnswer(source: *PeerSource) Error!wire.Answer {
    const until_ms = nowMs() + source.limits.record_ms;
    var head: [wire.head_size]u8 = undefined;
    try source.receiveAll(&head, until_ms);
    const size = std.mem.readInt(u16, &head, .big);
    if (size > wire.record_size_max - wire.head_size) return error.Broken;
    const record = source.record[0..size];
    try source.receiveAll(record, until_ms);
    const session = &source.connection.?.session;
    const text = session.answering.open(record) catch return error.Broken;
    return wire.parseAnswer(text) catch error.Wrong;
}

fn connect(source: *PeerSource, edge: base.Uuid) Error!void {
    const route = source.peers.routeTo(edge) orelse return error.Broken;
    const until_ms = nowMs() + source.limits.greeting_ms;
    const fd = open(&route) catch return error.Broken;
    source.connection = .{ .edge = edge, .fd = fd, .session = undefined };
    // Writable once it is connected; readable, too, once it has failed.
    try source.wait(linux.POLL.OUT, until_ms);
    var hello: wire.Greeting =
        .{ .kind = .hello, .from = route.own_id, .to = edge, .nonce = undefined };
    sys.random(&hello.nonce);
    const said = wire.emitGreeting(&hello, &route.key, null);
    try source.sendAll(&said, until_ms);
    var answer: wire.GreetingBytes = undefined;
    try source.receiveAll(&answer, until_ms);
    const welcome = wire.parseGreeting(&answer) catch return error.Broken;
    if (welcome.kind != .welcome or !welcome.from.eql(edge)) return error.Broken;
    if (!welcome.to.eql(route.own_id)) return error.Broken;
    if (!wire.isAuthentic(&answer, &route.key, &said)) return error.Broken;
    source.connection.?.session = .init(&route.key, &said, &answer);
}

fn open(route: *const SitePeers.Route) sys.Error!i32 {
    const kind = linux.SOCK.STREAM | linux.SOCK.NONBLOCK | linux.SOCK.CLOEXEC;
    const fd: i32 = @intCast(try sys.check(linux.socket(linux.AF.INET, kind, 0)));
    errdefer sys.close(fd);
    // Without that address here, the route's is used.
    if (route.own_ip) |ip| {
        const own = addressOf(.{ .ip = ip, .port = 0 });
        _ = linux.bind(fd, @ptrCast(&own), @sizeOf(linux.sockaddr.in));
    }
    const to = addressOf(route.to);
    const rc = linux.connect(fd, @ptrCast(&to), @sizeOf(linux.sockaddr.in));
    if (linux.errno(rc) != .INPROGRESS) _ = try sys.check(rc);
    return fd;
}

pub fn addressOf(endpoint: base.Endpoint) linux.sockaddr.in {
    return .{
        .port = std.mem.nativeToBig(u16, endpoint.port),
        .addr = @bitCast(endpoint.ip.bytes),
    };
}

fn sendAll(source: *PeerSource, bytes: []const u8, until_ms: u64) Error!void {
    const fd = source.connection.?.fd;
    var rest = bytes;
    while (rest.len > 0) {
        const rc = linux.sendto(fd, rest.ptr, rest.len, linux.MSG.NOSIGNAL, null, 0);
        const count = sys.check(rc) catch |err| switch (err) {
            error.Interrupted => continue,
            error.WouldBlock => {
                try source.wait(linux.POLL.OUT, until_ms);
                continue;
            },
            error.SystemCallFailed => return error.Broken,
        };
        rest = rest[count..];
    }
}

fn receiveAll(source: *PeerSource, buffer: []u8, until_ms: u64) Error!void {
    const fd = source.connection.?.fd;
    var rest = buffer;
    while (rest.len > 0) {
        const rc = linux.read(fd, rest.ptr, rest.len);
        const count = sys.check(rc) catch |err| switch (err) {
            error.Interrupted => continue,
            error.WouldBlock => {
                try source.wait(linux.POLL.IN, until_ms);
                continue;
            },
            error.SystemCallFailed => return error.Broken,
        };
        if (count == 0) return error.Broken;
        rest = rest[count..];
    }
}

fn isAbandoned(source: *const PeerSource) bool {
    return if (source.thread) |thread| thread.isAbandoned() else false;
}

/// Also ends when nobody waits for the transfer any more.
fn wait(source: *PeerSource, events: i16, until_ms: u64) Error!void {
    const fd = source.connection.?.fd;
    while (!source.isAbandoned()) {
        const left_ms = until_ms -| nowMs();
        if (left_ms == 0) return error.Broken;
        var polled = [1]linux.pollfd{.{ .fd = fd, .events = events, .revents = 0 }};
        const count = linux.poll(&polled, 1, @intCast(@min(left_ms, wait_step_ms)));
        if ((sys.check(count) catch 0) > 0) return;
    }
    return error.Broken;
}
