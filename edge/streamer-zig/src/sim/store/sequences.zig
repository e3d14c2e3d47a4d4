//! Runs every sequence of a few operations on the store, each from the same empty disk: depth
//! first, so that common prefixes run once. The four blocks are alike: they differ only in their
//! place, which no operation looks at. So of sequences that differ only in the names of their
//! blocks one is run, in which the blocks appear in order.
//!
//! Every operation of the short sequences is also interrupted at each of its changing calls, by an
//! end of the process and by a power cut.

const std = @import("std");
const base = @import("base");
const store = @import("store");
const Region = @import("../kit/region.zig");
const SimFiles = @import("../kit/sim_files.zig");
const StoreDevice = @import("device.zig");
const store_checks = @import("checks.zig");
const StoreModel = @import("model.zig");
const store_operation = @import("operation.zig");

const Cut = store_operation.Cut;
const Operation = store_operation.Operation;

pub const length_max = 8;
/// More than any operation has changing calls.
const calls_max = 200;

pub const Counts = struct {
    sequences: u64 = 0,
    cut: u64 = 0,

    pub fn add(counts: *Counts, other: *const Counts) void {
        counts.sequences += other.sequences;
        counts.cut += other.cut;
    }
};

pub const Violation = struct {
    what: []const u8,
    choices: [length_max]u8,
    length: u8,
    cut: ?Cut,

    pub fn format(violation: Violation, writer: *std.Io.Writer) std.Io.Writer.Error!void {
        try writer.print("{s}; sequence:", .{violation.what});
        var used: u8 = 0;
        for (violation.choices[0..violation.length]) |choice| try writer.print(
            " {f}",
            .{SequenceText{ .operation = operationOf(choice, &used) }},
        );
        if (violation.cut) |cut| try writer.print(
            ", the last interrupted by a {t} after {d} changing calls, {t} lost",
            .{ cut.how, cut.calls, cut.loss },
        );
    }
};

const SequenceText = struct {
    operation: Operation,

    pub fn format(spelled: SequenceText, writer: *std.Io.Writer) std.Io.Writer.Error!void {
        try writer.writeAll(@tagName(spelled.operation));
        switch (spelled.operation) {
            .write, .write_part, .discard => |range| try writer.print(
                " {d}+{d}",
                .{ range.first, range.count },
            ),
            else => {},
        }
    }
};

pub const StoreSequences = @This();

pub const Options = struct {
    seed: u64,
    length: u8,
    /// Sequences up to this length, followed by an interrupted one; null interrupts none.
    cut_after: ?u8 = null,
    crash_states: ?*StoreModel.CrashStates = null,
};

gpa: std.mem.Allocator,
options: Options,
region: *Region,
model: StoreModel,
batches: [3]store.WriteLayer.Batch,
model_counts: StoreModel.Counts,
counts: Counts,
choices: [length_max]u8,
violation: ?Violation,
/// Length of the sequence so far.
kept: [length_max]Snapshot,

const Snapshot = struct { region: Region.Copy, model: StoreModel };

const Error = error{ OutOfMemory, Violation };

/// Must not move.
pub fn create(gpa: std.mem.Allocator, options: Options) error{OutOfMemory}!*StoreSequences {
    const all = try gpa.create(StoreSequences);
    errdefer gpa.destroy(all);
    all.* = .{
        .gpa = gpa,
        .options = options,
        .region = try .create(),
        .model = undefined,
        .batches = @splat(.{}),
        .model_counts = .{},
        .counts = .{},
        .choices = @splat(0),
        .violation = null,
        .kept = undefined,
    };
    for (&all.kept) |*kept| kept.region = .{};
    return all;
}

pub fn destroy(all: *StoreSequences) void {
    for (&all.kept) |*kept| kept.region.deinit(all.gpa);
    all.region.destroy();
    all.gpa.destroy(all);
}

/// Runs the sequences that start with the operation of this number; returns false if there is none.
/// Each is independent of the others.
pub fn runFirst(all: *StoreSequences, first: u8) error{OutOfMemory}!bool {
    if (first >= choicesAfter(0)) return false;
    all.region.clear();
    all.runFrom(first) catch |err| return switch (err) {
        error.OutOfMemory => error.OutOfMemory,
        error.Violation => false,
    };
    return true;
}

fn runFrom(all: *StoreSequences, first: u8) Error!void {
    const given: StoreModel.Environment = .{
        .gpa = all.region.allocator(),
        .io = null,
        .batches = &all.batches,
        .counts = &all.model_counts,
        .crash_states = all.options.crash_states,
        .versions_kept = 3,
    };
    all.model.init(given, all.options.seed, .{}) catch |err| return all.fail(err, 0, null);
    const begin = try all.keep(0);
    if (first == 0 and all.options.cut_after != null) try all.cutAll(0, 0, begin);
    return all.tryOne(0, 0, first, begin);
}

fn keep(all: *StoreSequences, depth: u8) error{OutOfMemory}!*const Snapshot {
    const kept = &all.kept[depth];
    try all.region.copyTo(all.gpa, &kept.region);
    kept.model = all.model;
    return kept;
}

/// Runs all continuations after `depth` operations.
fn descend(all: *StoreSequences, depth: u8, used: u8) Error!void {
    const kept = try all.keep(depth);
    if (all.options.cut_after) |most| if (depth <= most) try all.cutAll(depth, used, kept);
    for (0..choicesAfter(used)) |choice| try all.tryOne(depth, used, @intCast(choice), kept);
}

fn tryOne(all: *StoreSequences, depth: u8, used: u8, choice: u8, kept: *const Snapshot) Error!void {
    var used_then = used;
    all.choices[depth] = choice;
    const operation = operationOf(choice, &used_then);
    try all.do(depth, operation, null, kept);
    all.counts.sequences += 1;
    if (depth + 1 < all.options.length) try all.descend(depth + 1, used_then);
}

/// Interrupts each operation at each of its changing calls, in each way.
fn cutAll(all: *StoreSequences, depth: u8, used: u8, kept: *const Snapshot) Error!void {
    const ways = [_]struct { how: @FieldType(Cut, "how"), loss: SimFiles.Loss }{
        .{ .how = .kill, .loss = .any },
        .{ .how = .crash, .loss = .any },
        .{ .how = .crash, .loss = .all },
        .{ .how = .crash, .loss = .nothing },
    };
    for (0..choicesAfter(used)) |choice| for (ways) |way| for (0..calls_max) |calls| {
        var used_then = used;
        all.choices[depth] = @intCast(choice);
        const operation = operationOf(@intCast(choice), &used_then);
        const cut: Cut = .{ .calls = calls, .how = way.how, .loss = way.loss };
        const before = all.model_counts.cut.get(operation);
        try all.do(depth, operation, cut, kept);
        if (all.model_counts.cut.get(operation) == before) break;
        all.counts.cut += 1;
    };
}

fn do(
    all: *StoreSequences,
    depth: u8,
    operation: Operation,
    cut: ?Cut,
    kept: *const Snapshot,
) Error!void {
    all.region.restore(&kept.region);
    all.model = kept.model;
    // The same sequence is the same run, whatever ran before.
    var hash: std.hash.Wyhash = .init(all.options.seed);
    hash.update(all.choices[0 .. depth + 1]);
    if (cut) |wanted| hash.update(std.mem.asBytes(&wanted.calls));
    all.model.prng = .init(hash.final());
    all.model.sim.pages.prng = .init(hash.final() +% 1);
    all.model.step(operation, cut) catch |err| return all.fail(err, depth + 1, cut);
    store_checks.checkAll(&all.model) catch |err| return all.fail(err, depth + 1, cut);
}

fn fail(all: *StoreSequences, err: StoreModel.Error, length: u8, cut: ?Cut) Error {
    if (err == error.OutOfMemory) return error.OutOfMemory;
    all.violation = .{
        .what = all.model.violation,
        .choices = all.choices,
        .length = length,
        .cut = cut,
    };
    return error.Violation;
}

/// Kinds of operations without a block come first.
const plain = [_]Operation{ .{ .flush = .maintenance }, .seal, .merge, .revert, .crash };
const on_block = 3;

fn operationOf(choice: u8, used: *u8) Operation {
    if (choice < plain.len) return plain[choice];
    const index = choice - @as(u8, plain.len);
    const place = index / on_block;
    used.* = @max(used.*, place + 1);
    const first = place * StoreDevice.sectors_per_block;
    return switch (index % on_block) {
        0 => .{ .write = .{ .first = first, .count = StoreDevice.sectors_per_block } },
        1 => .{ .write_part = .{ .first = first + 2, .count = 3 } },
        else => .{ .discard = .{ .first = first, .count = StoreDevice.sectors_per_block } },
    };
}

fn choicesAfter(used: u8) u8 {
    return @as(u8, plain.len) + on_block * @as(u8, @min(used + 1, StoreDevice.blocks));
}

test "sequences are counted without those that differ only in the names of blocks" {
    const all: *StoreSequences = try .create(std.testing.allocator, .{ .seed = 1, .length = 2 });
    defer all.destroy();
    var first: u8 = 0;
    while (try all.runFirst(first)) first += 1;
    try std.testing.expectEqual(null, all.violation);
    // 5 plain ones and 3 on the first block; after these 8 or 11 more.
    try std.testing.expectEqual(8 + 5 * 8 + 3 * 11, all.counts.sequences);
}
