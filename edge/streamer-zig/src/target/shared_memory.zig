//! Memory shared by the process of the kernel's disk and the process of the stream: the bytes of
//! reads in progress, and the state that must outlive the stream's process.

const std = @import("std");
const linux = std.os.linux;
const core = @import("core");
const stream = @import("wire").stream;
const Session = core.stream.Client.Session;
const LostDisk = core.target.LostDisk;
const sys = @import("host").sys;
const PowerOrder = @import("power_order.zig");

pub const Buffers = [core.target.nbd_queue.slots_max][core.target.nbd_queue.part_size_max]u8;

pub const Outcome = struct {
    outcome: stream.ReadyOutcome,
    /// When it was reported, µs since the kernel's start.
    uptime_us: u64,
    code: Text(12) = .{},
    sentence: Text(64) = .{},
};

pub const SharedMemory = struct {
    buffers: Buffers align(4096),
    outcome: Kept(Outcome) = .{},
    steps: Kept(stream.StepList) = .{},
    cache_path: Kept(Text(64)) = .{},
    order: Kept(PowerOrder) = .{},
    lost: Kept(LostDisk) = .{},
    /// Id of the last write; the next process uses higher ones.
    write_id: std.atomic.Value(u32) = .init(0),
    /// The newest session, which may be at another edge than the one that `attach` opened; null for
    /// that one.
    session: Latest(Session) = .{},
    /// The disk is halted because its write cache is full or lost.
    is_stopped: std.atomic.Value(bool) = .init(false),
    /// A write did not fit on the local disk: this machine cannot write any more.
    is_full: std.atomic.Value(bool) = .init(false),
    /// The initramfs is done, and the system reads the disk.
    has_handed_over: std.atomic.Value(bool) = .init(false),

    /// For this process and all that it will fork.
    pub fn init() sys.Error!*SharedMemory {
        const protection: linux.PROT = .{ .READ = true, .WRITE = true };
        const flags: linux.MAP = .{ .TYPE = .SHARED, .ANONYMOUS = true };
        const rc = linux.mmap(null, @sizeOf(SharedMemory), protection, flags, -1, 0);
        const memory: *SharedMemory = @ptrFromInt(try sys.check(rc));
        memory.outcome = .{};
        memory.steps = .{};
        memory.cache_path = .{};
        memory.order = .{};
        memory.lost = .{};
        memory.write_id = .init(0);
        memory.session = .{};
        memory.is_stopped = .init(false);
        memory.is_full = .init(false);
        memory.has_handed_over = .init(false);
        return memory;
    }
};

/// Text of bounded size; longer text is cut.
pub fn Text(comptime size_max: u8) type {
    return struct {
        buffer: [size_max]u8 = @splat(0),
        size: u8 = 0,

        const Self = @This();

        pub fn init(text: []const u8) Self {
            var made: Self = .{ .size = @intCast(@min(text.len, size_max)) };
            @memcpy(made.buffer[0..made.size], text[0..made.size]);
            return made;
        }

        pub fn slice(text: *const Self) []const u8 {
            return text.buffer[0..text.size];
        }
    };
}

/// A value whose writer may die at any instant: a later reader gets a complete value or none.
pub fn Kept(comptime T: type) type {
    return struct {
        is_whole: std.atomic.Value(bool) = .init(false),
        value: T = undefined,

        const Self = @This();

        pub fn set(kept: *Self, value: T) void {
            kept.is_whole.store(false, .seq_cst);
            kept.value = value;
            kept.is_whole.store(true, .seq_cst);
        }

        pub fn get(kept: *const Self) ?T {
            return if (kept.is_whole.load(.seq_cst)) kept.value else null;
        }
    };
}

/// The newest of several values, whose writer may die at any instant: a later reader gets the
/// newest complete value, never none once there was one.
pub fn Latest(comptime T: type) type {
    return struct {
        places: [2]T = undefined,
        /// Number of values written; the lowest bit is the slot of the newest.
        count: std.atomic.Value(u64) = .init(0),

        const Self = @This();

        pub fn set(latest: *Self, value: T) void {
            const count = latest.count.load(.seq_cst) + 1;
            latest.placeOf(count).* = value;
            latest.count.store(count, .seq_cst);
        }

        pub fn get(latest: *const Self) ?T {
            const count = latest.count.load(.seq_cst);
            return if (count == 0) null else latest.places[@intCast(count & 1)];
        }

        fn placeOf(latest: *Self, count: u64) *T {
            return &latest.places[@intCast(count & 1)];
        }
    };
}

const testing = std.testing;

test "if a session was not written completely, the one before is the newest" {
    const memory: *SharedMemory = try .init();
    try testing.expectEqual(null, memory.session.get());
    var session: Session = .{
        .id = 1,
        .cipher = .aegis_128l,
        .version_tag = 2,
        .version_id = .fromRandom(@splat(3)),
        .disk_size = 1 << 20,
        .fragment_size = 1440,
        .outstanding_bytes_max = 1 << 20,
        .resume_secret = @splat(4),
    };
    for ([_]u8{ 5, 6, 7 }) |last_number| {
        const pid = try sys.check(linux.fork());
        if (pid == 0) {
            session.edge = .{ .ip = .init(10, 0, 0, last_number), .port = 6910 };
            memory.session.set(session);
            // The next writer is killed half-way.
            const place = memory.session.placeOf(memory.session.count.load(.seq_cst) + 1);
            @memset(std.mem.asBytes(place)[0 .. @sizeOf(Session) / 2], 0xff);
            linux.exit_group(0);
        }
        var status: i32 = 0;
        _ = linux.waitpid(@intCast(pid), &status, 0);
        const kept = memory.session.get().?;
        try testing.expect(kept.edge.eql(.{ .ip = .init(10, 0, 0, last_number), .port = 6910 }));
        try testing.expectEqual(session.resume_secret, kept.resume_secret);
        try testing.expectEqual(session.disk_size, kept.disk_size);
    }
}

test "a value kept by one process is there for the next, and an incomplete one is not" {
    const memory: *SharedMemory = try .init();
    try testing.expectEqual(null, memory.outcome.get());
    const pid = try sys.check(linux.fork());
    if (pid == 0) {
        memory.outcome.set(.{ .outcome = .failed, .uptime_us = 7, .code = .init("cache_full") });
        memory.steps.set(.empty);
        memory.steps.is_whole.store(false, .seq_cst);
        memory.buffers[3][9] = 1;
        linux.exit_group(0);
    }
    var status: i32 = 0;
    _ = linux.waitpid(@intCast(pid), &status, 0);
    const outcome = memory.outcome.get().?;
    try testing.expectEqualStrings("cache_full", outcome.code.slice());
    try testing.expectEqual(null, memory.steps.get());
    try testing.expectEqual(1, memory.buffers[3][9]);
}
