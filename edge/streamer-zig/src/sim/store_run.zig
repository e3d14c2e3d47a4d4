//! Runs of the store against its model: random operations, and every sequence of a few.

const std = @import("std");
const StoreModel = @import("store_model.zig");

const Operation = StoreModel.Operation;

pub const sequence_max = 8;

pub const Result = struct {
    operations: u64 = 0,
    crashes: u64 = 0,
    sequences: u64 = 0,
    /// Null: none was found.
    violation: ?[]const u8 = null,
};

/// So many operations with crashes between and in the middle of them.
pub fn random(gpa: std.mem.Allocator, seed: u64, operations: u64) error{OutOfMemory}!Result {
    var model: StoreModel = undefined;
    model.init(gpa, seed) catch |err| return ended(&model, err);
    defer model.deinit();
    for (0..operations) |_| model.random() catch |err| return ended(&model, err);
    return .{ .operations = model.operations, .crashes = model.crashes };
}

/// Every sequence of this many operations. The blocks are alike, so that of sequences which differ only in the names of their blocks
/// one is run: each block is used for the first time after those before it.
pub fn sequences(gpa: std.mem.Allocator, seed: u64, length: u8) error{OutOfMemory}!Result {
    var total: Result = .{};
    var choices: [sequence_max]u8 = @splat(0);
    while (true) {
        var model: StoreModel = undefined;
        model.init(gpa, seed +% total.sequences) catch |err| return ended(&model, err);
        defer model.deinit();
        var used: u8 = 0;
        var at: u8 = 0;
        while (at < length) : (at += 1) model.step(operationOf(choices[at], &used), false) catch |err| {
            var result = try ended(&model, err);
            result.sequences = total.sequences;
            return result;
        };
        total.sequences += 1;
        total.operations += model.operations;
        total.crashes += model.crashes;
        if (!advance(choices[0..length])) return total;
    }
}

/// Kinds of operations without a block come first.
const plain = [_]Operation{ .flush, .seal, .merge, .revert, .crash };
const on_block = 3;

fn operationOf(choice: u8, used: *u8) Operation {
    if (choice < plain.len) return plain[choice];
    const index = choice - @as(u8, plain.len);
    const place = index / on_block;
    used.* = @max(used.*, place + 1);
    return switch (index % on_block) {
        0 => .{ .write = place },
        1 => .{ .write_part = place },
        else => .{ .discard = place },
    };
}

fn choicesAfter(used: u8) u8 {
    return @as(u8, plain.len) + on_block * @as(u8, @min(used + 1, StoreModel.blocks));
}

/// The next sequence; false: that was the last.
fn advance(choices: []u8) bool {
    var at = choices.len;
    while (at > 0) {
        at -= 1;
        var used: u8 = 0;
        for (choices[0..at]) |choice| _ = operationOf(choice, &used);
        choices[at] += 1;
        if (choices[at] < choicesAfter(used)) return true;
        choices[at] = 0;
    }
    return false;
}

fn ended(model: *const StoreModel, err: StoreModel.Error) error{OutOfMemory}!Result {
    return switch (err) {
        error.OutOfMemory => error.OutOfMemory,
        error.Violation => .{ .operations = model.operations, .crashes = model.crashes, .violation = model.violation },
    };
}

test "sequences are counted without those that differ by the names of blocks only" {
    const result = try sequences(std.testing.allocator, 1, 2);
    // 5 plain ones or 3 on the first block; after these, 8 or 11 more.
    try std.testing.expectEqual(5 * 8 + 3 * 11, result.sequences);
    try std.testing.expectEqual(null, result.violation);
}
