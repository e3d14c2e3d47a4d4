//! Replays the reads of a recorded boot without think times, and measures the time from the open
//! session to the last byte. Like a device with several reads in flight, with or without read-ahead
//! by the edge's boot profile, or in pieces, one after the other.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const linux = std.os.linux;
const sys = @import("host").sys;
const boot_words = @import("boot_words.zig");
const Content = @import("content.zig").Content;
const processor = @import("processor.zig");
const NbdConnection = @import("nbd_connection.zig").NbdConnection;
const SlotList = @import("slot_list.zig").SlotList;
const Receiver = @import("stream_device.zig").Receiver;
const StreamDevice = @import("stream_device.zig").StreamDevice;
const ReadAhead = core.profile.ReadAhead;
const LinkAccount = @import("link_account.zig").LinkAccount;
const Load = @import("load.zig");
const assert = std.debug.assert;

pub const Options = struct {
    way: Load.Transport,
    /// Address of an NBD server, or of the edge's boot scripts.
    server: base.Endpoint,
    trace: []const u8 = "",
    /// Reads of the system in flight.
    depth: u8 = 4,
    /// Splits longer reads into such pieces.
    piece: u32 = core.stream.Client.read_size_max,
    /// Memory for read-ahead; 0 disables it.
    read_ahead_mib: u16 = 0,
    disk_mib: u32 = 1024,
    packet_size_max: u16 = 1472,
    /// The disk's content; empty: the pattern.
    image: []const u8 = "",
    codec: Load.Codec = .lz4,
    mac: base.Mac = .fromInt(0x02bf_0002_0001),
    /// Parameters of the link, to account for its time.
    mbit_per_second: u32 = 1000,
};

pub const Result = struct {
    seconds: f64,
    reads: u64,
    bytes: u64,
    /// Size of the profile that the edge offered; 0: this boot was the first.
    profile_size: u32 = 0,
    /// Reads answered from read-ahead, and by waiting for it.
    ahead_reads: u64 = 0,
    ahead_bytes: u64 = 0,
    used_bytes: u64 = 0,
    retransmits: u64 = 0,
    /// Statistics of the stream; empty for NBD.
    cipher: []const u8 = "",
    missing_fragments: u64 = 0,
    /// Received packets and their bytes, without the headers of IP and UDP.
    packets_in: u64 = 0,
    bytes_in: u64 = 0,
    /// Sum over the reads, each from its first READ to its last byte.
    fetch_us: u64 = 0,
    /// Fragments that were duplicates, or belonged to no read any more.
    unexpected_fragments: u64 = 0,
    /// Bytes that arrived packed, as they are unpacked, and reads whose answers changed their form.
    unpacked_bytes: u64 = 0,
    contradictions: u64 = 0,
    /// Reads that bypassed read-ahead.
    misses: u64 = 0,
    /// Microseconds in which the link was busy, and in which it was idle, by cause (`LinkAccount`).
    full_us: u64 = 0,
    profile_us: u64 = 0,
    window_us: u64 = 0,
    pacing_us: u64 = 0,
    repeat_us: u64 = 0,
    ahead_us: u64 = 0,
    wanted_us: u64 = 0,
};

const limit_ns = 60 * std.time.ns_per_s;

pub fn run(
    gpa: std.mem.Allocator,
    options: *const Options,
    reads: []const core.device.read_trace.Read,
) Load.Error!Result {
    assert(options.depth > 0 and options.depth <= SlotList.most);
    var replay: Replay = .{
        .options = options,
        .content = Content.open(options.image) catch return error.SystemCallFailed,
        .reads = reads,
        .memory = try gpa.alloc(u8, @as(usize, options.depth) * slot_size),
    };
    defer gpa.free(replay.memory);
    for (0..options.depth) |slot| replay.free.set(slot);
    return switch (options.way) {
        .stream => replay.byStream(gpa),
        .nbd => replay.byNbd(),
    };
}

const slot_size = core.stream.Client.read_size_max;

const Replay = struct {
    options: *const Options,
    content: Content,
    reads: []const core.device.read_trace.Read,
    memory: []u8,
    free: std.bit_set.Static(SlotList.most) = .empty,
    offsets: [SlotList.most]u64 = undefined,
    lengths: [SlotList.most]u32 = undefined,
    at: usize = 0,
    at_offset: u32 = 0,
    count: u64 = 0,
    bytes: u64 = 0,

    const Piece = struct { slot: u8, offset: u64, buffer: []u8 };

    /// Returns the next read; null waits for a slot, or for the end.
    fn next(replay: *Replay) ?Piece {
        if (replay.at == replay.reads.len) return null;
        const slot = replay.free.findFirstSet() orelse return null;
        const read = replay.reads[replay.at].within(@as(u64, replay.options.disk_mib) << 20);
        const length = @min(replay.options.piece, read.length - replay.at_offset);
        const offset = read.offset + replay.at_offset;
        replay.free.unset(slot);
        replay.offsets[slot] = offset;
        replay.lengths[slot] = length;
        replay.at_offset += length;
        if (replay.at_offset == read.length) {
            replay.at += 1;
            replay.at_offset = 0;
        }
        return .{
            .slot = @intCast(slot),
            .offset = offset,
            .buffer = replay.memory[slot * slot_size ..][0..length],
        };
    }

    fn done(replay: *Replay, slot: u8) Load.Error!void {
        const length = replay.lengths[slot];
        if (!replay.content.isRight(
            replay.memory[@as(usize, slot) * slot_size ..][0..length],
            replay.offsets[slot],
        )) return error.WrongBytes;
        replay.free.set(slot);
        replay.count += 1;
        replay.bytes += length;
    }

    fn isOver(replay: *const Replay) bool {
        return replay.at == replay.reads.len and replay.free.count() == replay.options.depth;
    }

    fn result(replay: *const Replay, begun_ns: u64) Result {
        const seconds = @as(f64, @floatFromInt(processor.nowNs() - begun_ns)) / std.time.ns_per_s;
        return .{ .seconds = seconds, .reads = replay.count, .bytes = replay.bytes };
    }

    fn byNbd(replay: *Replay) Load.Error!Result {
        const options = replay.options;
        var connection: NbdConnection = .{};
        connection.open(options.server, @as(u64, options.disk_mib) << 20) catch
            return error.ServerNotReached;
        defer connection.close();
        const begun_ns = processor.nowNs();
        while (!replay.isOver()) {
            while (replay.next()) |piece|
                connection.submit(piece.slot, piece.offset, piece.buffer) catch
                    return error.SessionOver;
            try waitFor(connection.fd, 100_000, begun_ns);
            var ended: SlotList = .{};
            connection.receive(&ended) catch return error.SessionOver;
            for (ended.slice()) |slot| try replay.done(slot);
        }
        return replay.result(begun_ns);
    }

    fn byStream(replay: *Replay, gpa: std.mem.Allocator) Load.Error!Result {
        const options = replay.options;
        const receiver: *Receiver = try .create(gpa);
        defer gpa.destroy(receiver);
        var device: StreamDevice =
            try .init(
                gpa,
                options.depth + ReadAhead.client_places,
                options.packet_size_max,
                options.codec.mask(),
            );
        defer device.deinit(gpa);
        const cache = try gpa.alloc(
            u8,
            @max(ReadAhead.cache_size_min, @as(usize, options.read_ahead_mib) << 20),
        );
        defer gpa.free(cache);
        base.preferLargePages(cache);
        const tables = try gpa.create(ReadAhead.Tables);
        defer gpa.destroy(tables);
        var stream: Stream = .{
            .replay = replay,
            .device = &device,
            .receiver = receiver,
            .ahead = .init(tables, cache),
            .account = .init(options.mbit_per_second),
        };
        device.open(try boot_words.fetch(options.server, options.mac)) catch
            return error.SystemCallFailed;
        stream.begun_ns = processor.nowNs();
        while (device.client.session == null) try stream.turn();
        stream.begun_ns = processor.nowNs();
        stream.account.since_us = sys.monotonicUs();
        if (options.read_ahead_mib > 0) stream.ahead.start(&device.client);
        while (!replay.isOver()) {
            while (replay.next()) |piece|
                stream.ahead.read(&device.client, piece.slot, piece.offset, piece.buffer) catch
                    unreachable;
            try stream.turn();
        }
        var found = replay.result(stream.begun_ns);
        found.profile_size = device.client.session.?.profile_size;
        found.ahead_reads = stream.ahead.statistics.hits + stream.ahead.statistics.waits;
        found.ahead_bytes = stream.ahead.statistics.bytes;
        found.used_bytes = stream.ahead.statistics.used_bytes;
        found.retransmits = device.client.statistics.retransmits;
        found.cipher = @tagName(device.client.session.?.cipher);
        found.missing_fragments = device.client.statistics.missing_fragments;
        found.unexpected_fragments = device.client.statistics.unexpected_fragments;
        found.unpacked_bytes = device.client.statistics.unpacked_bytes;
        found.contradictions = device.client.statistics.contradictions;
        found.packets_in = device.client.statistics.packets_in;
        found.bytes_in = device.client.statistics.bytes_in;
        found.fetch_us = device.client.times.whole().fetch.sum_us;
        found.misses = stream.ahead.statistics.misses;
        inline for (@typeInfo(LinkAccount.Cause).@"enum".field_names) |name|
            @field(found, name ++
                "_us") = stream.account.spent_us.get(@field(LinkAccount.Cause, name));
        // Then the edge has the whole boot, and learns its profile.
        device.client.reportReady(sys.monotonicUs(), .ready, 0, .{});
        while (!stream.is_ready) try stream.turn();
        return found;
    }
};

const Stream = struct {
    replay: *Replay,
    device: *StreamDevice,
    receiver: *Receiver,
    ahead: ReadAhead,
    begun_ns: u64 = 0,
    is_ready: bool = false,
    account: LinkAccount,

    fn turn(stream: *Stream) Load.Error!void {
        const client = &stream.device.client;
        try stream.takeEvents();
        stream.ahead.pump(client);
        stream.device.flush(sys.monotonicUs());
        const deadline_us = client.deadline() orelse std.math.maxInt(u64);
        const asked_us = sys.monotonicUs();
        stream.account.note(asked_us, client, &stream.ahead);
        try waitFor(stream.device.fd, @min(100_000, deadline_us -| asked_us), stream.begun_ns);
        stream.device.receive(stream.receiver, sys.monotonicUs());
        try stream.takeEvents();
    }

    fn takeEvents(stream: *Stream) Load.Error!void {
        const client = &stream.device.client;
        while (client.nextEvent()) |event| {
            if (stream.ahead.take(client, &event)) continue;
            switch (event) {
                .read_done => |read| try stream.replay.done(@intCast(read.tag)),
                .ready_acknowledged => stream.is_ready = true,
                .refused, .version_changed, .cache_lost, .read_failed => return error.SessionOver,
                else => {},
            }
        }
        while (stream.ahead.nextDone()) |tag| try stream.replay.done(@intCast(tag));
    }
};

fn waitFor(fd: i32, wait_us: u64, begun_ns: u64) Load.Error!void {
    if (processor.nowNs() - begun_ns > limit_ns) return error.NothingCame;
    var polled = [_]linux.pollfd{.{ .fd = fd, .events = linux.POLL.IN, .revents = 0 }};
    var limit: linux.timespec = .{ .sec = 0, .nsec = @intCast(wait_us * std.time.ns_per_us) };
    _ = linux.ppoll(&polled, polled.len, &limit, null);
}
