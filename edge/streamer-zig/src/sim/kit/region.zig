//! The memory of a whole simulated world: after a copy is restored, all pointers into it are valid
//! again. Large blocks, which live for one step, lie outside and are reused.

const std = @import("std");
const base = @import("base");
const assert = std.debug.assert;
const Alignment = std.mem.Alignment;

pub const Region = @This();

const size_max = 32 << 20;
const large_min = 100 << 10;
const classes = 18;
const class_size_min = 16;

/// Large blocks that are kept for the next request of the same size.
const larges_max = 8;

const Free = struct { next: ?*Free };

used: usize = 0,
free: [classes]?*Free = @splat(null),
larges: base.BoundedArray([]align(4096) u8, larges_max) = .empty,
bytes: [size_max]u8 align(4096),

/// A copy of the used pages. Its memory serves the next copy too: allocating pages costs more than
/// copying them.
pub const Copy = struct {
    used: usize = 0,
    free: [classes]?*Free = @splat(null),
    bytes: []align(4096) u8 = &.{},

    pub fn deinit(copy: *Copy, gpa: std.mem.Allocator) void {
        gpa.free(copy.bytes);
        copy.bytes = &.{};
    }
};

pub fn create() error{OutOfMemory}!*Region {
    const region = try std.heap.page_allocator.create(Region);
    region.larges = .empty;
    region.clear();
    return region;
}

/// Frees everything.
pub fn clear(region: *Region) void {
    region.used = 0;
    region.free = @splat(null);
}

pub fn destroy(region: *Region) void {
    for (region.larges.constSlice()) |large| std.heap.page_allocator.free(large);
    std.heap.page_allocator.destroy(region);
}

pub fn copyTo(
    region: *const Region,
    gpa: std.mem.Allocator,
    copy: *Copy,
) error{OutOfMemory}!void {
    if (copy.bytes.len < region.used) {
        copy.deinit(gpa);
        const size = std.math.ceilPowerOfTwoAssert(usize, region.used);
        copy.bytes = try gpa.alignedAlloc(u8, .fromByteUnits(4096), size);
    }
    copy.used = region.used;
    copy.free = region.free;
    @memcpy(copy.bytes[0..region.used], region.bytes[0..region.used]);
}

pub fn restore(region: *Region, copy: *const Copy) void {
    region.used = copy.used;
    region.free = copy.free;
    @memcpy(region.bytes[0..copy.used], copy.bytes[0..copy.used]);
}

pub fn allocator(region: *Region) std.mem.Allocator {
    return .{
        .ptr = region,
        .vtable = &.{ .alloc = alloc, .resize = resize, .remap = remap, .free = freeBytes },
    };
}

fn classOf(size: usize) usize {
    const least = std.math.log2_int(usize, class_size_min);
    return std.math.log2_int_ceil(usize, @max(size, class_size_min)) - least;
}

fn sizeOfClass(class: usize) usize {
    return @as(usize, class_size_min) << @intCast(class);
}

fn alloc(context: *anyopaque, size: usize, alignment: Alignment, _: usize) ?[*]u8 {
    const region: *Region = @ptrCast(@alignCast(context));
    if (size >= large_min) return region.takeLarge(size);
    const class = classOf(@max(size, alignment.toByteUnits()));
    if (region.free[class]) |found| {
        region.free[class] = found.next;
        return @ptrCast(found);
    }
    // A block is aligned to its size, up to a page.
    const whole = sizeOfClass(class);
    const at = std.mem.alignForward(usize, region.used, @min(whole, 4096));
    if (at + whole > size_max) return null;
    region.used = at + whole;
    return region.bytes[at..].ptr;
}

fn resize(_: *anyopaque, memory: []u8, alignment: Alignment, size: usize, _: usize) bool {
    if (memory.len >= large_min or size >= large_min) return false;
    const least = alignment.toByteUnits();
    return classOf(@max(size, least)) == classOf(@max(memory.len, least));
}

fn remap(
    context: *anyopaque,
    memory: []u8,
    alignment: Alignment,
    size: usize,
    return_address: usize,
) ?[*]u8 {
    return if (resize(context, memory, alignment, size, return_address)) memory.ptr else null;
}

fn freeBytes(context: *anyopaque, memory: []u8, alignment: Alignment, _: usize) void {
    const region: *Region = @ptrCast(@alignCast(context));
    if (memory.len >= large_min) return region.giveBackLarge(@alignCast(memory));
    const class = classOf(@max(memory.len, alignment.toByteUnits()));
    const freed: *Free = @ptrCast(@alignCast(memory.ptr));
    freed.* = .{ .next = region.free[class] };
    region.free[class] = freed;
}

fn takeLarge(region: *Region, size: usize) ?[*]u8 {
    for (region.larges.constSlice(), 0..) |large, index| {
        if (large.len == size) return region.larges.swapRemove(@intCast(index)).ptr;
    }
    const large = std.heap.page_allocator.alignedAlloc(u8, .fromByteUnits(4096), size) catch
        return null;
    return large.ptr;
}

fn giveBackLarge(region: *Region, large: []align(4096) u8) void {
    if (region.larges.isFull()) return std.heap.page_allocator.free(large);
    region.larges.appendAssumeCapacity(large);
}

test "a restored world is as it was" {
    const region: *Region = try .create();
    defer region.destroy();
    const gpa = region.allocator();
    var list: std.ArrayList(u64) = .empty;
    var copy: Copy = .{};
    defer copy.deinit(std.testing.allocator);
    // A copy of less memory comes first.
    try list.append(gpa, 0);
    try region.copyTo(std.testing.allocator, &copy);
    for (1..100) |number| try list.append(gpa, number);
    try region.copyTo(std.testing.allocator, &copy);
    const before = list;
    for (0..1000) |number| try list.append(gpa, number * 2);
    @memset(list.items, 7);
    list.deinit(gpa);
    region.restore(&copy);
    list = before;
    for (list.items, 0..) |found, number| try std.testing.expectEqual(number, found);
    try list.append(gpa, 100);
    try std.testing.expectEqual(101, list.items.len);
}
