//! Generates load: devices that read at random in one loop, all over the stream or all over NBD.
//! Each read is checked and timed, and the next one follows at once; processor time is counted from
//! the end of the warm-up to the end.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const linux = std.os.linux;
const sys = @import("host").sys;
const Epoll = @import("host").Epoll;
const boot_words = @import("boot_words.zig");
const Content = @import("content.zig").Content;
const processor = @import("processor.zig");
const Latencies = @import("latencies.zig");
const NbdConnection = @import("nbd_connection.zig").NbdConnection;
const SlotList = @import("slot_list.zig").SlotList;
const Receiver = @import("stream_device.zig").Receiver;
const StreamDevice = @import("stream_device.zig").StreamDevice;
const assert = std.debug.assert;

pub const Transport = enum { stream, nbd };

pub const Options = struct {
    way: Transport,
    /// Address of an NBD server, or of the edge's boot scripts.
    server: base.Endpoint,
    devices: u16 = 1,
    /// Reads in flight of each device.
    depth: u8 = 1,
    read_size: u32 = 32 << 10,
    disk_mib: u32 = 1024,
    warm_up_ms: u32 = 200,
    measure_ms: u32 = 1000,
    /// 0 omits the server's processor time.
    server_pid: i32 = 0,
    packet_size_max: u16 = 1472,
    /// The disk's content; empty: the pattern.
    image: []const u8 = "",
    /// Whether the devices take packed answers.
    codec: Codec = .lz4,
    first_mac: base.Mac = .fromInt(0x02bf_0001_0001),
};

pub const Codec = enum {
    off,
    lz4,

    pub fn mask(codec: Codec) u8 {
        return if (codec == .off) 0 else core.stream.Client.codecs;
    }
};

pub const Result = struct {
    seconds: f64,
    reads: u64,
    bytes: u64,
    mb_per_second: f64,
    p50_us: f64,
    p99_us: f64,
    max_us: f64,
    server_seconds_per_gb: f64,
    client_seconds_per_gb: f64,
    machine_seconds_per_gb: f64,
    /// READs and fragments that the stream's clients had to request again (retransmissions).
    retransmits: u64 = 0,
    missing_fragments: u64 = 0,
    /// Duplicate fragments.
    unexpected_fragments: u64 = 0,
    /// Bytes that arrived packed, as they are unpacked, and reads whose answers changed their form.
    unpacked_bytes: u64 = 0,
    contradictions: u64 = 0,
    /// The least and the most that a device received.
    least_mb_per_second: f64,
    most_mb_per_second: f64,
    fragment_size: u16 = 0,
    /// Statistics of the stream; empty for NBD.
    cipher: []const u8 = "",
};

pub const Error = error{
    OutOfMemory,
    SystemCallFailed,
    EdgeNotReached,
    NoScript,
    ServerNotReached,
    SessionOver,
    WrongBytes,
    NothingCame,
};

/// The load ends after this time without any progress.
const silence_ns_max = 20 * std.time.ns_per_s;
const open_ns_max = 20 * std.time.ns_per_s;

const Slot = struct { offset: u64 = 0, begun_ns: u64 = 0, buffer: []u8 };

pub fn run(gpa: std.mem.Allocator, options: *const Options) Error!Result {
    assert(options.depth > 0 and options.depth <= SlotList.most);
    _ = sys.raiseFileLimit();
    var load: Load = try .init(gpa, options);
    defer load.deinit(gpa);
    return load.measure();
}

const Load = struct {
    options: *const Options,
    epoll: Epoll,
    receiver: *Receiver,
    streams: []StreamDevice,
    connections: []NbdConnection,
    deadlines_us: []u64,
    slots: []Slot,
    memory: []u8,
    /// Reads of each device.
    reads_each: []u64,
    content: Content,
    prng: base.Prng = .init(1),
    latencies: Latencies = .{},
    reads: u64 = 0,
    /// Number of completed reads, to detect progress.
    ended: u64 = 0,
    is_measured: bool = false,
    now_ns: u64 = 0,

    fn init(gpa: std.mem.Allocator, options: *const Options) Error!Load {
        const is_stream = options.way == .stream;
        const slot_count = @as(usize, options.devices) * options.depth;
        var load: Load = .{
            .options = options,
            .content = Content.open(options.image) catch return error.SystemCallFailed,
            .epoll = Epoll.init() catch return error.SystemCallFailed,
            .receiver = try .create(gpa),
            .streams = try gpa.alloc(StreamDevice, if (is_stream) options.devices else 0),
            .connections = try gpa.alloc(NbdConnection, if (is_stream) 0 else options.devices),
            .deadlines_us = try gpa.alloc(u64, options.devices),
            .slots = try gpa.alloc(Slot, slot_count),
            .memory = try gpa.alloc(u8, slot_count * options.read_size),
            .reads_each = try gpa.alloc(u64, options.devices),
        };
        @memset(load.memory, 0);
        @memset(load.reads_each, 0);
        @memset(load.deadlines_us, std.math.maxInt(u64));
        for (load.slots, 0..) |*slot, index| slot.* = .{
            .buffer = load.memory[index * options.read_size ..][0..options.read_size],
        };
        for (load.streams) |*device|
            device.* = try .init(
                gpa,
                options.depth,
                options.packet_size_max,
                options.codec.mask(),
            );
        for (load.connections) |*connection| connection.* = .{};
        return load;
    }

    fn deinit(load: *Load, gpa: std.mem.Allocator) void {
        for (load.streams) |*device| device.deinit(gpa);
        for (load.connections) |*connection| if (connection.fd >= 0) connection.close();
        gpa.free(load.streams);
        gpa.free(load.connections);
        gpa.free(load.deadlines_us);
        gpa.free(load.slots);
        gpa.free(load.memory);
        gpa.free(load.reads_each);
        gpa.destroy(load.receiver);
        load.epoll.deinit();
    }

    fn measure(load: *Load) Error!Result {
        const options = load.options;
        try load.openAll();
        load.now_ns = processor.nowNs();
        for (0..options.devices) |device|
            for (0..options.depth) |slot| try load.begin(device, @intCast(slot));
        for (0..options.devices) |device| load.flush(device);
        try load.runUntil(load.now_ns + @as(u64, options.warm_up_ms) * std.time.ns_per_ms);
        load.is_measured = true;
        const repeats_before = load.statistics();
        const begun_ns = processor.nowNs();
        const before: processor.Times = .now(options.server_pid);
        try load.runUntil(begun_ns + @as(u64, options.measure_ms) * std.time.ns_per_ms);
        const ended_ns = processor.nowNs();
        const times = processor.Times.now(options.server_pid).since(before);
        return load.resultOf(ended_ns - begun_ns, times, repeats_before);
    }

    const Retransmissions = struct {
        reads: u64 = 0,
        fragments: u64 = 0,
        unexpected: u64 = 0,
        unpacked: u64 = 0,
        contradictions: u64 = 0,
    };

    fn statistics(load: *const Load) Retransmissions {
        var sum: Retransmissions = .{};
        for (load.streams) |*device| {
            sum.reads += device.client.statistics.retransmits;
            sum.fragments += device.client.statistics.missing_fragments;
            sum.unexpected += device.client.statistics.unexpected_fragments;
            sum.unpacked += device.client.statistics.unpacked_bytes;
            sum.contradictions += device.client.statistics.contradictions;
        }
        return sum;
    }

    fn resultOf(
        load: *const Load,
        ns: u64,
        times: processor.Times,
        before: Retransmissions,
    ) Error!Result {
        if (load.reads == 0) return error.NothingCame;
        const bytes = load.reads * load.options.read_size;
        const seconds = @as(f64, @floatFromInt(ns)) / std.time.ns_per_s;
        const retransmits = load.statistics();
        const least, const most = std.mem.minMax(u64, load.reads_each);
        return .{
            .seconds = seconds,
            .reads = load.reads,
            .bytes = bytes,
            .mb_per_second = @as(f64, @floatFromInt(bytes)) / seconds / 1e6,
            .p50_us = load.latencies.quantileUs(500),
            .p99_us = load.latencies.quantileUs(990),
            .max_us = load.latencies.quantileUs(1000),
            // Nanoseconds per byte equal seconds per 10^9 bytes.
            .server_seconds_per_gb = perByte(times.server_ns, bytes),
            .client_seconds_per_gb = perByte(times.client_ns, bytes),
            .machine_seconds_per_gb = perByte(times.machine_ns, bytes),
            .retransmits = retransmits.reads - before.reads,
            .missing_fragments = retransmits.fragments - before.fragments,
            .unexpected_fragments = retransmits.unexpected - before.unexpected,
            .unpacked_bytes = retransmits.unpacked - before.unpacked,
            .contradictions = retransmits.contradictions - before.contradictions,
            .least_mb_per_second = load.perSecond(least, seconds),
            .most_mb_per_second = load.perSecond(most, seconds),
            .fragment_size = if (load.streams.len > 0) load.streams[0].client.fragmentSize() else 0,
            .cipher = if (load.streams.len > 0)
                @tagName(load.streams[0].client.session.?.cipher)
            else
                "",
        };
    }

    fn perSecond(load: *const Load, reads: u64, seconds: f64) f64 {
        return @as(f64, @floatFromInt(reads * load.options.read_size)) / seconds / 1e6;
    }

    fn perByte(ns: u64, bytes: u64) f64 {
        return @as(f64, @floatFromInt(ns)) / @as(f64, @floatFromInt(bytes));
    }

    fn openAll(load: *Load) Error!void {
        const options = load.options;
        const disk_size = @as(u64, options.disk_mib) << 20;
        for (load.connections, 0..) |*connection, index| {
            connection.open(options.server, disk_size) catch return error.ServerNotReached;
            load.epoll.add(connection.fd, .read, index) catch return error.SystemCallFailed;
        }
        for (load.streams, 0..) |*device, index| {
            const mac: base.Mac = .fromInt(@intCast(options.first_mac.toInt() + index));
            device.open(try boot_words.fetch(options.server, mac)) catch
                return error.SystemCallFailed;
            load.epoll.add(device.fd, .read, index) catch return error.SystemCallFailed;
            load.flush(index);
        }
        const limit = processor.nowNs() + open_ns_max;
        while (load.countOpen() < load.streams.len) {
            if (processor.nowNs() > limit) return error.EdgeNotReached;
            try load.turn();
        }
        for (load.streams) |*device|
            if (device.client.session.?.disk_size < disk_size) return error.SessionOver;
    }

    fn countOpen(load: *const Load) usize {
        var count: usize = 0;
        for (load.streams) |*device| count += @intFromBool(device.client.session != null);
        return count;
    }

    fn runUntil(load: *Load, end_ns: u64) Error!void {
        var ended = load.ended;
        var heard_ns = load.now_ns;
        while (load.now_ns < end_ns) {
            try load.turn();
            if (load.ended != ended) heard_ns = load.now_ns;
            ended = load.ended;
            if (load.now_ns - heard_ns > silence_ns_max) return error.NothingCame;
        }
    }

    fn turn(load: *Load) Error!void {
        var buffer: [64]u64 = undefined;
        const tokens = load.epoll.wait(&buffer, load.timeoutMs()) catch
            return error.SystemCallFailed;
        load.now_ns = processor.nowNs();
        for (tokens) |token| try load.serve(@intCast(token));
        const now_us = load.now_ns / std.time.ns_per_us;
        // Packets waiting in a device's socket are not lost: a device with its own processor would
        // have read them.
        for (load.deadlines_us, 0..) |deadline_us, device|
            if (deadline_us <= now_us) try load.serve(device);
    }

    /// Waits until the next deadline of a device; busy-waits the last part of a millisecond.
    fn timeoutMs(load: *const Load) i32 {
        var earliest: u64 = std.math.maxInt(u64);
        for (load.deadlines_us) |deadline_us| earliest = @min(earliest, deadline_us);
        const now_us = processor.nowNs() / std.time.ns_per_us;
        return @intCast(@min(100, (earliest -| now_us) / std.time.us_per_ms));
    }

    fn serve(load: *Load, device: usize) Error!void {
        var done: SlotList = .{};
        switch (load.options.way) {
            .stream => {
                const stream = &load.streams[device];
                stream.receive(load.receiver, load.now_ns / std.time.ns_per_us);
                if (!stream.takeDone(&done)) return error.SessionOver;
            },
            .nbd => load.connections[device].receive(&done) catch return error.SessionOver,
        }
        for (done.slice()) |slot| {
            try load.end(device, slot);
            try load.begin(device, slot);
        }
        load.flush(device);
    }

    fn begin(load: *Load, device: usize, index: u8) Error!void {
        const slot = &load.slots[device * load.options.depth + index];
        const count = (@as(u64, load.options.disk_mib) << 20) / load.options.read_size;
        slot.offset = load.prng.below(count) * load.options.read_size;
        slot.begun_ns = load.now_ns;
        switch (load.options.way) {
            .stream => load.streams[device].client.submit(index, slot.offset, slot.buffer) catch
                unreachable,
            .nbd => load.connections[device].submit(index, slot.offset, slot.buffer) catch
                return error.SessionOver,
        }
    }

    fn end(load: *Load, device: usize, index: u8) Error!void {
        const slot = &load.slots[device * load.options.depth + index];
        load.ended += 1;
        if (!load.content.isRight(slot.buffer, slot.offset)) return error.WrongBytes;
        if (!load.is_measured) return;
        load.reads += 1;
        load.reads_each[device] += 1;
        load.latencies.add(processor.nowNs() - slot.begun_ns);
    }

    fn flush(load: *Load, device: usize) void {
        if (load.options.way == .nbd) return;
        const stream = &load.streams[device];
        stream.flush(load.now_ns / std.time.ns_per_us);
        load.deadlines_us[device] = stream.client.deadline() orelse std.math.maxInt(u64);
    }
};
