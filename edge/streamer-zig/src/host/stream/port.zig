//! The stream on the network: datagrams to the agent, disk bytes back. What both mean for boots is
//! the agent's to decide.

const std = @import("std");
const base = @import("base");
const agent = @import("agent");
const core = @import("core");
const EdgeIo = @import("../edge_io.zig");
const Agent = EdgeIo.Agent;
const VersionDisk = @import("version_disk.zig").VersionDisk;
const shard_messages = @import("shard_messages.zig");
const sys = @import("../sys.zig");
const ReadWorkers = @import("read_workers.zig");
const StreamReads = @import("reads.zig");
const stream_sending = @import("sending.zig");
const StreamShards = @import("shards.zig");
const LayerWorkers = @import("layer_workers.zig");
const UdpSocket = @import("../net/udp_socket.zig");

const Arrival = agent.stream.Arrival;
const ReadRequest = core.stream.Server.ReadRequest;

pub const StreamPort = @This();

policy: Agent.Stream,
reads: StreamReads,
/// Packets that go out together.
sealed: []u8,
/// Bytes of disks, and how many READs got them, since the start.
sent_bytes: u64 = 0,
reads_count: u64 = 0,
/// Null where no device's writes can be kept.
layer_workers: ?*LayerWorkers = null,
/// Null where this loop serves all devices itself.
shards: ?*StreamShards = null,

pub const Options = StreamReads.Options;

pub fn init(
    gpa: std.mem.Allocator,
    policy: Agent.Stream,
    options: Options,
) StreamReads.InitError!StreamPort {
    var reads_options = options;
    reads_options.queue.flows = @intCast(policy.server.sessions.len);
    var reads: StreamReads = try .init(gpa, reads_options);
    errdefer reads.deinit(gpa);
    const sealed = try gpa.alloc(u8, stream_sending.sealed_size);
    return .{ .policy = policy, .reads = reads, .sealed = sealed };
}

/// The threads that read disks: until `deinit`, or until the process ends.
pub fn start(port: *StreamPort) std.Thread.SpawnError!void {
    try port.reads.workers.start();
    if (port.shards) |shards| try shards.start();
}

/// Before `start`: takes reads that find the store damaged.
pub fn setRepairs(port: *StreamPort, repairs: ReadWorkers.Repairs) void {
    port.reads.workers.repairs = repairs;
    const shards = port.shards orelse return;
    for (shards.shards) |shard| shard.reads.workers.repairs = repairs;
}

/// Shards end; all that they have counted is.
pub fn stopShards(port: *StreamPort) void {
    const shards = port.shards orelse return;
    shards.stop();
    port.drainShards(sys.monotonicUs());
}

/// Sessions may have changed.
pub fn syncShards(port: *StreamPort) void {
    if (port.shards) |shards| shards.sync(&port.policy.server, port.policy.boots);
}

/// Applies the shards' read events, and handles the packets that they forwarded.
pub fn drainShards(port: *StreamPort, now_us: u64) void {
    const shards = port.shards orelse return;
    shards.clearWake();
    for (shards.shards) |shard| {
        // What comes meanwhile may follow events that were not there yet: it waits for the next
        // call, which it has asked for.
        const count = shard.forwarded.count();
        while (shard.events.peek()) |event| : (shard.events.release()) port.takeReadEvent(event);
        for (0..count) |_| {
            const forwarded = shard.forwarded.peek().?;
            defer shard.forwarded.release();
            port.policy.receive(
                &.{
                    .from = forwarded.from,
                    .bytes = forwarded.bytes[0..forwarded.size],
                    .at_us = forwarded.at_us,
                },
                now_us,
            );
        }
    }
    port.syncShards();
}

pub fn deinit(port: *StreamPort, gpa: std.mem.Allocator) void {
    port.reads.deinit(gpa);
    port.policy.deinit(gpa);
    gpa.free(port.sealed);
    port.* = undefined;
}

pub fn receive(port: *StreamPort, socket: *UdpSocket, now_us: u64) void {
    const count = socket.receive();
    // READs came before what their devices say after them.
    port.drainShards(now_us);
    for (0..count) |index| {
        if (index == 0) port.policy.expect(socket.sender(0));
        if (index + 1 < count) port.policy.expect(socket.sender(index + 1));
        const datagram = socket.datagram(index);
        port.policy.receive(
            &.{ .from = datagram.from, .bytes = datagram.bytes, .at_us = datagram.at_us },
            now_us,
        );
    }
}

/// Runs at the end of a turn, after the reads that waited for the works before.
pub fn beginLayerWorks(port: *StreamPort) void {
    port.policy.boots.caches.beginWorks();
}

/// Threads have ended works for write layers.
pub fn endLayerWorks(port: *StreamPort, now_us: u64) void {
    const workers = port.layer_workers orelse return;
    while (workers.takeEnded()) |work| port.policy.endWork(work, now_us);
}

/// The process ends: threads end what they do for layers, and layers are closed in order, as far as
/// that takes no longer than `limit_us`. Nothing is sent.
pub fn settleLayers(port: *StreamPort, limit_us: u64) void {
    const workers = port.layer_workers orelse return;
    const until_us = sys.monotonicUs() + limit_us;
    const caches = &port.policy.boots.caches;
    while (caches.isWorking()) {
        const now_us = sys.monotonicUs();
        if (now_us >= until_us) return;
        sys.waitReadable(workers.endedFd(), (until_us - now_us) / std.time.us_per_ms + 1);
        port.endLayerWorks(now_us);
    }
    caches.settleAll(until_us);
}

/// Waits until no thread opens or changes a write cache that is to be handed over, `limit_us` at
/// most; returns whether that is so. Devices are answered, and what they write meanwhile waits.
pub fn restLayers(port: *StreamPort, limit_us: u64) bool {
    const workers = port.layer_workers orelse return true;
    const until_us = sys.monotonicUs() + limit_us;
    while (port.policy.boots.caches.isBusy()) {
        const now_us = sys.monotonicUs();
        if (now_us >= until_us) return false;
        sys.waitReadable(workers.endedFd(), (until_us - now_us) / std.time.us_per_ms + 1);
        port.endLayerWorks(now_us);
    }
    return true;
}

/// Applies a shard's event of a READ to its boot.
fn takeReadEvent(port: *StreamPort, event: *const shard_messages.ReadEvent) void {
    const policy = &port.policy;
    const read = &event.read;
    const ref = policy.bootOf(read) orelse return policy.server.forget(read.boot_id);
    switch (event.what) {
        .came => policy.onShardRead(read, ref, event.arrival),
        .unanswered => policy.onUnanswered(read, event.arrival),
        .sending => |at_us| policy.countTraffic(ref, read, event.arrival, at_us),
        .answered => |measured| policy.countTimes(ref, read, event.arrival, measured),
        .store_error => |at_us| policy.onStoreError(read, at_us),
    }
}

/// `port` must not move afterwards.
pub fn calls(port: *StreamPort) EdgeIo.StreamCalls {
    return .{
        .context = port,
        .reads = &port.reads,
        .syncShards = onSessions,
        .read = serveRead,
        .sendProfile = sendProfile,
    };
}

fn of(context: *anyopaque) *StreamPort {
    return @ptrCast(@alignCast(context));
}

fn onSessions(context: *anyopaque) void {
    of(context).syncShards();
}

fn serveRead(
    context: *anyopaque,
    socket: *UdpSocket,
    request: *const ReadRequest,
    arrival: Arrival,
) void {
    const port = of(context);
    port.reads.take(port, socket, request, arrival);
}

/// It is small and requested once a boot: the boot's counters do not include it.
fn sendProfile(
    context: *anyopaque,
    socket: *UdpSocket,
    request: *const ReadRequest,
    document: []const u8,
) void {
    const port = of(context);
    const bytes = port.reads.buffer[0..request.length];
    const size = @min(bytes.len, document.len);
    @memcpy(bytes[0..size], document[0..size]);
    @memset(bytes[size..], 0);
    _ = port.sendRead(socket, request, bytes, 0);
}

// The interface that `StreamReads` requires of its port.

pub fn diskOf(port: *StreamPort, version_id: base.Uuid) ?*VersionDisk {
    const version = port.policy.boots.io.findVersion(version_id) orelse return null;
    return &version.disk;
}

pub fn layerOf(port: *StreamPort, boot_id: base.Uuid) ?*agent.write_caches.Layer {
    return port.policy.layerOf(boot_id);
}

/// A thread reads from a layer: it stays open until that is over.
pub fn beginLayerRead(port: *StreamPort, layer: *agent.write_caches.Layer) void {
    port.policy.boots.caches.beginRead(layer);
}

pub fn endLayerRead(port: *StreamPort, layer: *agent.write_caches.Layer) void {
    port.policy.boots.caches.endRead(layer);
}

pub fn hasSession(port: *StreamPort, session_id: u64) bool {
    return port.policy.server.findById(session_id) != null;
}

pub fn sendRead(
    port: *StreamPort,
    socket: *UdpSocket,
    read: *const ReadRequest,
    bytes: []const u8,
    sent: u16,
) stream_sending.Sent {
    const unsent: stream_sending.What = .{ .bytes = bytes, .sent = sent };
    return stream_sending.sendRead(&port.policy.server, port.sealed, socket, read, unsent);
}

/// Counted when it is over.
pub fn onSending(_: *StreamPort, _: *const ReadRequest, _: Arrival) void {}

/// All of a READ's bytes are on their way.
pub fn onAnswered(
    port: *StreamPort,
    read: *const ReadRequest,
    arrival: Arrival,
    now_us: u64,
    measured: core.boot.ReadTimes.ReadSample,
) void {
    port.sent_bytes += read.bytes_out;
    port.reads_count += 1;
    port.policy.onAnswered(read, arrival, now_us, measured);
}

pub fn onUnanswered(port: *StreamPort, read: *const ReadRequest, arrival: Arrival) void {
    port.policy.onUnanswered(read, arrival);
}

pub fn refuseRead(
    port: *StreamPort,
    _: *UdpSocket,
    read: *const ReadRequest,
    why: StreamReads.Error,
    at_us: u64,
) void {
    port.policy.refuseRead(read, why, at_us);
}
