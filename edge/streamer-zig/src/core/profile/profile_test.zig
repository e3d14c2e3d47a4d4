//! Tests of profile.zig: fading, what stays, its bounds, its file.

const std = @import("std");
const base = @import("base");
const wire = @import("wire").stream.profile;
const BootProfile = @import("profile.zig");
const testing = std.testing;

const World = struct {
    of: *BootProfile,
    scratch: *BootProfile.Scratch,

    fn init() !World {
        const of = try testing.allocator.create(BootProfile);
        of.* = .{};
        return .{ .of = of, .scratch = try testing.allocator.create(BootProfile.Scratch) };
    }

    fn deinit(world: World) void {
        testing.allocator.destroy(world.of);
        testing.allocator.destroy(world.scratch);
    }

    fn boot(world: World, units: []const wire.Unit) void {
        world.of.merge(units, 1_795_000_000_000, world.scratch);
    }

    fn expectHanded(world: World, expected: []const wire.Unit) !void {
        var out: [wire.document_size_max]u8 = undefined;
        const document = world.of.document(&out);
        if (expected.len == 0) return testing.expectEqual(0, document.len);
        const units = try wire.openDocument(document);
        try testing.expectEqual(expected.len, units.count());
        for (expected, 0..) |wanted, index|
            try testing.expectEqual(wanted, units.at(@intCast(index)));
    }
};

fn unit(index: u40, blocks: u8) wire.Unit {
    return .{ .index = index, .blocks = blocks };
}

test "one boot makes a profile in its order; blocks that a quarter of the boots read stay" {
    const world: World = try .init();
    defer world.deinit();
    try world.expectHanded(&.{});
    world.boot(&.{ unit(9, 0xff), unit(3, 0x01), unit(5, 0x10) });
    try world.expectHanded(&.{ unit(9, 0xff), unit(3, 0x01), unit(5, 0x10) });
    for (0..20) |round| {
        if (round % 2 == 0) world.boot(
            &.{ unit(9, 0xff), unit(5, 0x10) },
        ) else world.boot(&.{ unit(9, 0xff), unit(3, 0x03), unit(5, 0x10) });
    }
    try world.expectHanded(&.{ unit(9, 0xff), unit(3, 0x03), unit(5, 0x10) });
    try testing.expectEqual(21, world.of.boots);
    try testing.expectEqual((8 + 2 + 1) * 4096, world.of.handedBytes());
}

test "blocks that are no longer read are not sent after some boots, and forgotten later" {
    const world: World = try .init();
    defer world.deinit();
    for (0..BootProfile.memory_boots) |_| world.boot(&.{ unit(1, 1), unit(2, 1) });
    var boots: u32 = 0;
    while (world.of.slice().len == 2) : (boots += 1) {
        try testing.expect(boots < 64);
        if (boots == 30) try world.expectHanded(&.{unit(1, 1)});
        world.boot(&.{unit(1, 1)});
    }
    try testing.expect(boots > BootProfile.memory_boots);
    try world.expectHanded(&.{unit(1, 1)});
}

test "the place of a unit follows the boots" {
    const world: World = try .init();
    defer world.deinit();
    world.boot(&.{ unit(1, 1), unit(2, 1), unit(3, 1) });
    for (0..40) |_| world.boot(&.{ unit(3, 1), unit(2, 1), unit(1, 1) });
    try world.expectHanded(&.{ unit(3, 1), unit(2, 1), unit(1, 1) });
}

test "beyond the capacity, units that the fewest boots read are dropped, the last first" {
    const world: World = try .init();
    defer world.deinit();
    const first = try testing.allocator.alloc(wire.Unit, wire.units_max);
    defer testing.allocator.free(first);
    for (first, 0..) |*item, index| item.* = unit(@intCast(index), 0xff);
    world.boot(first);
    for (first, 0..) |*item, index| item.* = unit(@intCast(index + 100), 0xff);
    world.boot(first);
    try testing.expectEqual(wire.units_max, world.of.slice().len);
    var lost: u32 = 0;
    for (world.of.slice()) |*known| {
        if (known.index >= 100 and known.index < wire.units_max)
            try testing.expectEqual(255, known.weights[0])
        else
            lost += 1;
    }
    // Only one of the two boots had read 200 units, and 100 of them fit.
    try testing.expectEqual(100, lost);
    var out: [wire.document_size_max]u8 = undefined;
    try testing.expectEqual(
        wire.units_max,
        (try wire.openDocument(world.of.document(&out))).count(),
    );
}

test "another version gets the unchanged blocks, and soon learns the new ones" {
    const world: World = try .init();
    defer world.deinit();
    for (0..20) |_| world.boot(&.{ unit(0, 0xff), unit(1, 0xff), unit(2, 0xff) });
    const parent: base.Uuid = .fromRandom(@splat(7));
    world.of.carry(parent);
    world.of.drop(6, 10);
    try world.expectHanded(&.{ unit(0, 0x3f), unit(2, 0xff) });
    try testing.expectEqual(0, world.of.boots);
    world.boot(&.{ unit(0, 0x3f), unit(7, 1) });
    try world.expectHanded(&.{ unit(0, 0x3f), unit(2, 0xff), unit(7, 1) });
    world.of.drop(0, std.math.maxInt(u64));
    try world.expectHanded(&.{});
}

test "its file survives; a damaged one, or one of something else, is refused" {
    const world: World = try .init();
    defer world.deinit();
    world.boot(&.{ unit(9, 0xff), unit(std.math.maxInt(u40), 0x80) });
    world.of.carried_from = .fromRandom(@splat(3));
    const named: BootProfile.Named = .{
        .version = .fromRandom(@splat(1)),
        .class = .{ .key = 77, .name = .init("UEFI x86-64 3c:ec:ef") },
    };
    const buffer = try testing.allocator.create([BootProfile.file_size_max]u8);
    defer testing.allocator.destroy(buffer);
    const bytes = world.of.encode(&named, buffer);
    const other: World = try .init();
    defer other.deinit();
    const found = try other.of.decode(bytes);
    try testing.expect(found.version.eql(named.version) and found.class.key == 77);
    try testing.expectEqualStrings("UEFI x86-64 3c:ec:ef", found.class.name.slice());
    try testing.expectEqualSlices(BootProfile.Unit, world.of.slice(), other.of.slice());
    try testing.expect(other.of.carried_from.eql(world.of.carried_from));
    for (0..bytes.len) |at| {
        bytes[at] ^= 4;
        const reason: BootProfile.DecodeError = if (at < 8) error.Foreign else error.Damaged;
        try testing.expectError(reason, other.of.decode(bytes));
        bytes[at] ^= 4;
        try testing.expectError(
            if (at < 8) error.Foreign else error.Damaged,
            other.of.decode(bytes[0..at]),
        );
    }
    try testing.expectError(error.Foreign, other.of.decode(""));
}
