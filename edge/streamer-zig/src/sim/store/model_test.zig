//! Runs the store against its model: a few hundred operations on each kind of disk, and cases found
//! by longer runs. `zig build store-sim` does millions.

const std = @import("std");
const store = @import("store");
const SignatureMemory = @import("../kit/signature_memory.zig");
const store_checks = @import("checks.zig");
const StoreModel = @import("model.zig");
const store_operation = @import("operation.zig");
const store_run = @import("run.zig");
const testing = std.testing;

const ModelFixture = struct {
    counts: StoreModel.Counts = .{},
    batches: [3]store.WriteLayer.Batch = @splat(.{}),
    memory: *SignatureMemory,
    known: store.simulated.Memory,

    fn create() !*ModelFixture {
        const fixture = try testing.allocator.create(ModelFixture);
        errdefer testing.allocator.destroy(fixture);
        const memory: *SignatureMemory = try .create(testing.allocator);
        fixture.* = .{ .memory = memory, .known = memory.interface() };
        store.simulated.memory = &fixture.known;
        return fixture;
    }

    fn destroy(fixture: *ModelFixture) void {
        store.simulated.memory = null;
        testing.allocator.destroy(fixture.memory);
        testing.allocator.destroy(fixture);
    }

    fn given(fixture: *ModelFixture) StoreModel.Environment {
        return .{
            .gpa = testing.allocator,
            .io = testing.io,
            .batches = &fixture.batches,
            .counts = &fixture.counts,
        };
    }
};

test "no byte of a version or a layer is wrong after any operation, end of a process or power cut" {
    const fixture: *ModelFixture = try .create();
    defer fixture.destroy();
    for (1..5) |seed| {
        const violation = try store_run.oneDisk(
            fixture.given(),
            .{ .seed = seed, .operations = 300 },
        ) orelse continue;
        std.debug.print(
            "disk {d}, operation {d}: {s}\n",
            .{ violation.seed, violation.operation, violation.what },
        );
        return error.Violation;
    }
}

/// Ends the process at one changing call of an operation, and then cuts the power at one of the
/// following calls: all pairs.
fn expectKept(
    first: []const store_operation.Operation,
    killed: store_operation.Operation,
    next: []const store_operation.Operation,
) !void {
    const fixture: *ModelFixture = try .create();
    defer fixture.destroy();
    for (0..30) |calls| for ([_]u64{ 1, 2, 3 }) |seed| {
        var model: StoreModel = undefined;
        defer model.deinit();
        try model.init(fixture.given(), seed, .{});
        for (first) |operation| try model.step(operation, null);
        try model.step(killed, .{ .calls = calls, .how = .kill });
        for (next) |operation| try model.step(operation, null);
        try model.step(.crash, .{ .calls = 1000, .how = .crash, .loss = .all });
        try store_checks.checkAll(&model);
    };
}

const of_persistent: store_operation.Range = .{ .who = .persistent, .first = 0, .count = 8 };
const of_maintenance: store_operation.Range = .{ .first = 0, .count = 8 };

test "a write repeated after its edge was killed in a sync is durable when it is acknowledged" {
    // The map's record was written and not synced: its bit looked durable to the next process.
    try expectKept(
        &.{.{ .write = of_persistent }},
        .{ .flush = .persistent },
        &.{ .{ .write = of_persistent }, .{ .flush = .persistent } },
    );
}

test "a write to a layer whose creation was killed is durable when it is acknowledged" {
    try expectKept(
        &.{},
        .{ .write = of_persistent },
        &.{ .{ .write = of_persistent }, .{ .flush = .persistent } },
    );
}

test "a version that a killed process has sealed, merged or imported is durable once another process has seen it" {
    for ([_]store_operation.Operation{ .seal, .merge, .import }) |made|
        try expectKept(&.{ .{ .write = of_maintenance }, .{ .flush = .maintenance } }, made, &.{});
}

test "a layer whose removal was killed does not look lost later" {
    const written: []const store_operation.Operation = &.{
        .{ .write = of_persistent },
        .{ .flush = .persistent },
    };
    try expectKept(written, .{ .boot = .persistent }, &.{.{ .boot = .persistent }});
    try expectKept(
        &.{ .{ .write = of_maintenance }, .{ .flush = .maintenance } },
        .revert,
        &.{.revert},
    );
}
