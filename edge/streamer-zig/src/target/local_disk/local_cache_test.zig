//! Tests of local_cache.zig, with a file in place of the disk.

const std = @import("std");
const linux = std.os.linux;
const sys = @import("host").sys;
const LocalCache = @import("local_cache.zig");
const RamCache = @import("../ram_cache.zig");
const testing = std.testing;

const block_size = 4096;
const sector_size = 512;

const Machine = struct {
    ram: RamCache,
    cache: LocalCache,
    fd: i32,

    const Sizes = struct {
        disk: u64,
        ram_pages: u64 = 0,
        local_slots: u64,
        limit_slots: ?u64 = null,
    };

    /// In place, since the cache keeps a pointer to its memory.
    fn init(machine: *Machine, sizes: Sizes) !void {
        machine.fd = @intCast(try sys.check(linux.memfd_create("local-disk", 0)));
        _ = try sys.check(linux.ftruncate(machine.fd, @intCast(sizes.local_slots * block_size)));
        machine.ram = try .init(sizes.disk, sizes.ram_pages * block_size);
        machine.cache = try .init(.{
            .fd = machine.fd,
            .size = sizes.local_slots * block_size,
            .limit = if (sizes.limit_slots) |slots| slots * block_size else null,
            .memory_max = 1 << 30,
            .ram = &machine.ram,
        });
        try machine.cache.map.look();
    }

    fn deinit(machine: *Machine) void {
        machine.cache.map.deinit();
        machine.ram.deinit();
        sys.close(machine.fd);
    }

    /// In the disk's order: memory first.
    fn write(machine: *Machine, bytes: []const u8, offset: u64) !LocalCache.WriteResult {
        const rest = try machine.ram.write(bytes, offset) orelse return .done;
        return machine.cache.write(
            bytes[@intCast(rest.offset - offset)..][0..rest.length],
            rest.offset,
        );
    }

    fn discard(machine: *Machine, offset: u64, length: u64) !void {
        try machine.ram.discard(offset, length);
        try machine.cache.discard(offset, length);
    }

    fn read(machine: *Machine, bytes: []u8, offset: u64) !void {
        try machine.cache.lay(bytes, offset);
        try machine.ram.lay(bytes, offset);
    }

    fn onDisk(machine: *const Machine, gpa: std.mem.Allocator) ![]u8 {
        const size = try sys.check(linux.lseek(machine.fd, 0, linux.SEEK.END));
        const bytes = try gpa.alloc(u8, size);
        _ = try sys.readAt(machine.fd, bytes, 0);
        return bytes;
    }
};

test "reads return the last write, from memory, the local disk or the version, for any order of writes and discards" {
    const sectors = 1500;
    const size = sectors * sector_size;
    const count_max = 256;
    for ([_]u64{ 0, 40 }) |pages| {
        var machine: Machine = undefined;
        try machine.init(.{ .disk = size, .ram_pages = pages, .local_slots = 230 });
        defer machine.deinit();
        var prng: std.Random.DefaultPrng = .init(pages);
        const random = prng.random();
        const expected = try testing.allocator.alloc(u8, size);
        defer testing.allocator.free(expected);
        @memset(expected, 'b');
        var buffer: [count_max * sector_size]u8 = undefined;
        for (0..400) |turn| {
            const first = random.uintLessThan(u32, sectors);
            const most: u32 = if (turn % 16 == 0) count_max else 20;
            const count = random.intRangeAtMost(u32, 1, @min(most, sectors - first));
            const offset, const length = .{
                @as(usize, first) * sector_size,
                @as(usize, count) * sector_size,
            };
            switch (random.uintLessThan(u8, 8)) {
                0 => {
                    const long = @min(random.uintLessThan(usize, 10) * length, size - offset);
                    try machine.discard(offset, long);
                    @memset(expected[offset..][0..long], 0);
                },
                1...4 => {
                    const bytes = expected[offset..][0..length];
                    for (bytes, 0..) |*byte, index| byte.* = @truncate(turn +% index / sector_size);
                    try testing.expectEqual(.done, try machine.write(bytes, offset));
                    try testing.expect(machine.cache.hasAll(offset, length));
                },
                else => {
                    const bytes = buffer[0..length];
                    // The version is not asked if all of it is here.
                    @memset(bytes, if (machine.cache.hasAll(offset, length)) 'x' else 'b');
                    try machine.read(bytes, offset);
                    try testing.expectEqualSlices(u8, expected[offset..][0..length], bytes);
                },
            }
        }
        try machine.discard(0, size);
        try testing.expectEqual(0, machine.cache.usedBytes());
    }
}

test "nothing written can be read on the disk, and no two seals are equal" {
    var machine: Machine = undefined;
    try machine.init(.{ .disk = 1 << 20, .local_slots = 100 });
    defer machine.deinit();
    const text = "what this machine has written. ";
    var bytes: [8 * block_size]u8 = undefined;
    for (&bytes, 0..) |*byte, index| byte.* = text[index % text.len];
    for (0..4) |_| _ = try machine.write(&bytes, 0);
    const raw = try machine.onDisk(testing.allocator);
    defer testing.allocator.free(raw);
    try testing.expectEqual(null, std.mem.find(u8, raw, text[0..8]));
    // The same plain bytes, written repeatedly.
    for (0..31) |one| for (one + 1..32) |other|
        try testing.expect(
            !std.mem.eql(u8, raw[one * block_size ..][0..64], raw[other * block_size ..][0..64]),
        );
    var read: [8 * block_size]u8 = undefined;
    try machine.read(&read, 0);
    try testing.expectEqualSlices(u8, &bytes, &read);
}

test "a flipped bit, an older block, another's block and a truncated disk are found" {
    const Damage = enum { flipped, older, swapped, cut };
    for (std.enums.values(Damage)) |harm| {
        var machine: Machine = undefined;
        try machine.init(.{ .disk = 1 << 20, .local_slots = 40 });
        defer machine.deinit();
        var bytes: [2 * block_size]u8 = @splat('1');
        _ = try machine.write(&bytes, 0);
        const older = try machine.onDisk(testing.allocator);
        defer testing.allocator.free(older);
        // Until the slot of the first write is reused.
        for (0..40) |_| _ = try machine.write(&bytes, 0);
        @memset(&bytes, '2');
        try machine.read(&bytes, 0);
        try testing.expectEqual('1', bytes[0]);
        const entry = machine.cache.map.get(0);
        const at = (entry.slot - 1) * block_size;
        const now = try machine.onDisk(testing.allocator);
        defer testing.allocator.free(now);
        const block = now[at..][0..block_size];
        switch (harm) {
            .flipped => block[77] ^= 0x10,
            .older => @memcpy(block, older[0..block_size]),
            .swapped => @memcpy(
                block,
                now[(machine.cache.map.get(1).slot - 1) * block_size ..][0..block_size],
            ),
            .cut => _ = try sys.check(linux.ftruncate(machine.fd, at + 100)),
        }
        if (harm != .cut) _ = try sys.check(linux.pwrite(machine.fd, block, block_size, at));
        const expected: LocalCache.Error = if (harm == .cut) error.Lost else error.Damaged;
        try testing.expectError(expected, machine.read(&bytes, 0));
        // Nor when a part of the block is written, which needs the rest.
        try testing.expectError(expected, machine.write(bytes[0..sector_size], 0));
    }
}

test "a full cache takes new bytes only of blocks that it has, and has space again after a discard" {
    var machine: Machine = undefined;
    try machine.init(.{ .disk = 1 << 20, .ram_pages = 2, .local_slots = 100, .limit_slots = 10 });
    defer machine.deinit();
    var bytes: [12 * block_size]u8 = @splat('a');
    try testing.expectEqual(.done, try machine.write(&bytes, 0));
    try testing.expectEqual(10 * block_size, machine.cache.usedBytes());
    try testing.expectEqual(machine.cache.sizeBytes(), machine.cache.usedBytes());
    try testing.expectEqual(.full, try machine.write(bytes[0..sector_size], 20 * block_size));
    for (0..50) |turn| {
        @memset(&bytes, @intCast(turn));
        try testing.expectEqual(.done, try machine.write(&bytes, 0));
        try testing.expectEqual(
            .done,
            try machine.write(bytes[0 .. 3 * sector_size], 5 * block_size + sector_size),
        );
    }
    // A part of one block, which keeps its slot, and all of another.
    try machine.discard(6 * block_size + sector_size, block_size + 7 * sector_size);
    try testing.expectEqual(9 * block_size, machine.cache.usedBytes());
    try testing.expectEqual(.done, try machine.write(bytes[0..sector_size], 20 * block_size));
    try testing.expectEqual(.full, try machine.write(bytes[0..sector_size], 21 * block_size));
    var read: [3 * block_size]u8 = @splat('x');
    try machine.read(&read, 5 * block_size);
    try testing.expectEqual(49, read[block_size]);
    for (read[block_size + sector_size ..]) |byte| try testing.expectEqual(0, byte);
}

test "the next process continues with the writes of the one before, and reuses no counter" {
    var machine: Machine = undefined;
    try machine.init(.{ .disk = 1 << 20, .local_slots = 100 });
    defer machine.deinit();
    const bytes: [2 * block_size]u8 = @splat('c');
    const pid = try sys.check(linux.fork());
    if (pid == 0) {
        _ = machine.cache.write(&bytes, 512) catch linux.exit_group(1);
        linux.exit_group(0);
    }
    var status: i32 = 0;
    _ = linux.waitpid(@intCast(pid), &status, 0);
    try testing.expectEqual(0, status);
    try testing.expectEqual(4, machine.cache.map.nextCounter());
    var read: [3 * block_size]u8 = @splat('b');
    try machine.read(&read, 0);
    for (read, 0..) |byte, at|
        try testing.expectEqual(@as(u8, if (at < 512 or at >= 512 + bytes.len) 'b' else 'c'), byte);
}

test "the map's memory limits the use of a large disk" {
    var ram: RamCache = try .init(1 << 30, 1 << 20);
    defer ram.deinit();
    const fd: i32 = @intCast(try sys.check(linux.memfd_create("local-disk", 0)));
    defer sys.close(fd);
    var cache: LocalCache = try .init(
        .{ .fd = fd, .size = 1 << 42, .limit = null, .memory_max = 32 * 1000, .ram = &ram },
    );
    defer sys.close(cache.map.fd);
    try testing.expectEqual((1000 - 33) * block_size, cache.sizeBytes());
}
