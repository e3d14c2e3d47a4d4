//! Copies versions from one store into another one of the same id, at the same places: nodes and
//! blocks that the other one lacks, each compared with its hash before it is written, and read back
//! from the other disk afterwards. What is there already is not read from the source again, so a
//! copy that was interrupted, or an older one, is continued.
//!
//! The caller commits a version, by its manifest, only if nothing was found wrong with it. Nothing
//! that an earlier manifest of the destination refers to is ever changed.

const std = @import("std");
const base = @import("base");
const block = @import("../block.zig");
const Files = @import("../files/files.zig");
const LocationMap = @import("../tree/location_map.zig");
const manifest_module = @import("../tree/manifest.zig");
const PlaceWriter = @import("place_writer.zig");
const store_dir = @import("../files/store_dir.zig");
const TreeWalker = @import("../tree/walk.zig");
const unit_module = @import("../unit.zig");
const Verification = @import("../verify.zig");
const assert = std.debug.assert;

const Location = block.Location;
const Manifest = manifest_module.Manifest;
const Store = store_dir.Store;

/// Bytes that are read and written as one.
const batch_size_max = 1 << 20;
/// A packed block takes at least a sector.
const batch_items_max = batch_size_max / block.unit_sector_size;
/// Bytes that are checked between two calls of `Pulse`.
const check_step = 4 << 20;
const problems_max = 8;

/// Files.Error: of the destination. Faults of the source are problems of the version.
pub const Error = Files.Error || error{ OutOfMemory, Canceled };

/// Called while bytes are copied and checked, with their number so far; waits to limit the rate.
/// Throws `Canceled` to end at a point from which the same copy continues.
pub const Pulse = struct {
    context: *anyopaque,
    call: *const fn (*anyopaque, u64) error{Canceled}!void,
};

pub const Problem = struct {
    side: enum { source, destination },
    /// Null for a block.
    level: ?u8,
    /// Bytes from the start of the disk.
    at: u64,
    why: TreeWalker.Error,
};

pub const Problems = struct {
    /// The first ones.
    named: base.BoundedArray(Problem, problems_max) = .empty,
    count: u64 = 0,

    fn add(problems: *Problems, problem: Problem) void {
        problems.count += 1;
        problems.named.append(problem) catch {};
    }
};

const Item = struct { location: Location, hash: block.Hash, first: u64 };

pub const TreeCopy = @This();

gpa: std.mem.Allocator,
from: *Store,
to: *Store,
pulse: Pulse,
/// Reads back what was written; its maps hold everything that the destination has whole.
check: Verification,
fresh_data: LocationMap,
fresh_nodes: LocationMap,
data: PlaceWriter,
nodes: PlaceWriter,
items: []Item,
item_count: usize = 0,
/// Offset of `items` in their file, and the bytes that they take.
batch_at: u64 = 0,
batch_size: usize = 0,
buffer: []u8,
raw: *[unit_module.raw_size_max]u8,
/// The unit in `raw`.
unpacked: Location = .none,
absent: unit_module.BlockSet = 0,
problems: Problems = .{},
/// Bytes written.
copied: u64 = 0,
/// Bytes copied or found.
seen: u64 = 0,

/// Both stores stay open, and do not move.
pub fn init(
    gpa: std.mem.Allocator,
    from: *Store,
    to: *Store,
    pulse: Pulse,
    evict: ?PlaceWriter.Evict,
) error{OutOfMemory}!TreeCopy {
    assert(from.id.eql(to.id));
    const items = try gpa.alloc(Item, batch_items_max);
    errdefer gpa.free(items);
    const buffer = try gpa.alloc(u8, batch_size_max);
    errdefer gpa.free(buffer);
    return .{
        .gpa = gpa,
        .from = from,
        .to = to,
        .pulse = pulse,
        .check = .init(gpa, to),
        .fresh_data = .init(gpa),
        .fresh_nodes = .init(gpa),
        .data = .init(&to.data, evict),
        .nodes = .init(&to.nodes, evict),
        .items = items,
        .buffer = buffer,
        .raw = try gpa.create([unit_module.raw_size_max]u8),
    };
}

pub fn deinit(copy: *TreeCopy) void {
    copy.check.deinit();
    copy.fresh_data.deinit();
    copy.fresh_nodes.deinit();
    copy.data.deinit();
    copy.nodes.deinit();
    copy.gpa.free(copy.items);
    copy.gpa.free(copy.buffer);
    copy.gpa.destroy(copy.raw);
    copy.* = undefined;
}

/// Notes what the destination has below a version that was committed there. Reads nodes alone.
pub fn hold(copy: *TreeCopy, manifest: *const Manifest) (Error || TreeWalker.Error)!void {
    var walker: TreeWalker = .init(&copy.to.nodes, manifest.root, manifest.rootLevel());
    while (walker.next()) |step| {
        const map = if (step.level == null) &copy.check.seen_data else &copy.check.seen_nodes;
        if (try map.add(step.entry.location) != .none or step.level == null) continue;
        try walker.enter(&step);
        try copy.tick();
    }
}

/// Forgets what `hold` and `run` have noted, after a version with problems: parts of it may be
/// missing below nodes that other versions share.
pub fn forget(copy: *TreeCopy) void {
    for ([_]*LocationMap{ &copy.check.seen_data, &copy.check.seen_nodes }) |map| empty(map);
}

/// Copies what the destination lacks of a version, makes it durable, and reads it back. The version
/// must stay open. @returns what was found wrong
pub fn run(copy: *TreeCopy, manifest: *const Manifest) Error!*const Problems {
    copy.problems = .{};
    empty(&copy.fresh_data);
    empty(&copy.fresh_nodes);
    copy.unpacked = .none;
    var walker: TreeWalker = .init(&copy.from.nodes, manifest.root, manifest.rootLevel());
    while (walker.next()) |step| {
        if (step.level != null) {
            try copy.takeNode(&walker, &step);
        } else if (copy.check.seen_data.useOf(step.entry.location) == .none) {
            if (try copy.fresh_data.add(step.entry.location) == .none)
                try copy.takeBlock(&step);
        }
    }
    try copy.flush();
    try copy.data.sync();
    try copy.nodes.sync();
    if (copy.problems.count == 0) try copy.readBack(manifest);
    return &copy.problems;
}

fn takeNode(copy: *TreeCopy, walker: *TreeWalker, step: *const TreeWalker.Step) Error!void {
    const location = step.entry.location;
    if (copy.check.seen_nodes.useOf(location) != .none) return;
    if (try copy.fresh_nodes.add(location) != .none) return;
    walker.enter(step) catch |err| return copy.problems.add(.{
        .side = .source,
        .level = step.level,
        .at = step.first * block.block_size,
        .why = err,
    });
    const bytes = std.mem.asBytes(&walker.frames[walker.depth - 1].node);
    var found: block.Block = undefined;
    const is_there = try copy.nodes.read(location.file, location.offset(), &found) and
        std.mem.eql(u8, &found, bytes);
    if (!is_there) {
        try copy.nodes.write(location.file, location.offset(), bytes);
        copy.copied += block.block_size;
    }
    copy.seen += block.block_size;
    try copy.tick();
}

fn takeBlock(copy: *TreeCopy, step: *const TreeWalker.Step) Error!void {
    const location = step.entry.location;
    if (location.is_packed and !unit_module.isPossible(location))
        return copy.addProblem(step.first, error.Damaged);
    const item: Item = .{
        .location = location,
        .hash = step.entry.hash,
        .first = step.first,
    };
    const size = location.storedSize();
    if (copy.item_count > 0) {
        const last = copy.items[copy.item_count - 1].location;
        const is_same_unit = location.is_packed and last.is_packed and
            location.unit().eql(last.unit());
        const follows = location.file == last.file and
            location.offset() == copy.batch_at + copy.batch_size and
            copy.batch_size + size <= batch_size_max;
        if (copy.item_count < copy.items.len and (is_same_unit or follows)) {
            copy.items[copy.item_count] = item;
            copy.item_count += 1;
            if (!is_same_unit) copy.batch_size += size;
            return;
        }
        try copy.flush();
    }
    copy.items[0] = item;
    copy.item_count = 1;
    copy.batch_at = location.offset();
    copy.batch_size = size;
}

/// Copies the blocks of the batch, if they are not there.
fn flush(copy: *TreeCopy) Error!void {
    if (copy.item_count == 0) return;
    const items = copy.items[0..copy.item_count];
    copy.item_count = 0;
    const file = items[0].location.file;
    const bytes = copy.buffer[0..copy.batch_size];
    const is_there = try copy.data.read(file, copy.batch_at, bytes) and copy.areRight(items, bytes);
    if (!is_there) {
        const is_read = copy.from.data.read(
            .{ .file = file, .block = 0 },
            copy.batch_at,
            bytes,
        ) catch false;
        if (is_read and copy.areRight(items, bytes)) {
            try copy.data.write(file, copy.batch_at, bytes);
            copy.copied += bytes.len;
        } else for (items) |*item| try copy.copyAlone(item);
    }
    copy.seen += bytes.len;
    try copy.tick();
}

/// Copies a block of a batch that cannot be read as a whole.
fn copyAlone(copy: *TreeCopy, item: *const Item) Error!void {
    const bytes = copy.buffer[0..item.location.storedSize()];
    const items = item[0..1];
    const file, const offset = .{ item.location.file, item.location.offset() };
    const is_whole = copy.from.data.read(item.location, 0, bytes) catch |err|
        return copy.addProblem(item.first, switch (err) {
            error.NotFound => error.Damaged,
            else => error.ReadFailed,
        });
    copy.batch_at = offset;
    if (!is_whole or !copy.areRight(items, bytes))
        return copy.addProblem(item.first, error.Damaged);
    try copy.data.write(file, offset, bytes);
    copy.copied += bytes.len;
}

fn addProblem(copy: *TreeCopy, first: u64, why: TreeWalker.Error) void {
    copy.problems.add(.{
        .side = .source,
        .level = null,
        .at = first * block.block_size,
        .why = why,
    });
}

/// Compares blocks with their hashes. `bytes` begin at `batch_at` of the file.
fn areRight(copy: *TreeCopy, items: []const Item, bytes: []const u8) bool {
    copy.unpacked = .none;
    for (items) |*item| {
        const location = item.location;
        const at: usize = @intCast(location.offset() - copy.batch_at);
        const stored = bytes[at..][0..location.storedSize()];
        const found = if (location.is_packed)
            copy.blockOf(location, stored) orelse return false
        else
            stored[0..block.block_size];
        if (!std.mem.eql(u8, &block.hashOf(found), &item.hash)) return false;
    }
    return true;
}

/// Returns a packed block, or null if its unit is damaged or lacks it.
fn blockOf(copy: *TreeCopy, location: Location, stored: []const u8) ?*const block.Block {
    const place = location.place();
    if (!copy.unpacked.eql(location.unit())) {
        copy.unpacked = .none;
        const size = (@as(usize, place.last) + 1) * block.block_size;
        copy.absent = unit_module.unpack(copy.raw[0..size], stored) catch return null;
        copy.unpacked = location.unit();
    }
    if (unit_module.isIn(copy.absent, place.index)) return null;
    return copy.raw[@as(usize, place.index) * block.block_size ..][0..block.block_size];
}

fn readBack(copy: *TreeCopy, manifest: *const Manifest) Error!void {
    copy.check.begin(manifest);
    while (true) switch (try copy.check.step(check_step)) {
        .done => return,
        .more => try copy.tick(),
        .problem => |problem| copy.problems.add(.{
            .side = .destination,
            .level = problem.step.level,
            .at = problem.step.first * block.block_size,
            .why = problem.why,
        }),
    };
}

fn tick(copy: *const TreeCopy) error{Canceled}!void {
    return copy.pulse.call(copy.pulse.context, copy.seen + copy.check.checked);
}

fn empty(map: *LocationMap) void {
    const gpa = map.gpa;
    map.deinit();
    map.* = .init(gpa);
}
