//! `store.Files` in memory, as a disk that keeps only what it must: what was not synced is lost or kept at a crash, 512-byte sector by
//! sector and name by name, in any mixture, and may have reached the disk at any moment before. The same seed gives the same disk.
//!
//! A test that wants a crash in the middle of something sets `stop_after`: when so many operations that change something are done, all
//! further ones fail; then it calls `crash` and opens again. It never reads a file that is not there for the caller of `Files`.

const std = @import("std");
const base = @import("base");
const store = @import("store");
const assert = std.debug.assert;

const Error = store.files.Error;
const Handle = store.files.Handle;
const Mode = store.files.Mode;
const Prng = base.Prng;

pub const SimFiles = @This();

const page_size = 4096;
const sector_size = 512;
const sectors_per_page = page_size / sector_size;
const root: u32 = 0;

gpa: std.mem.Allocator,
prng: Prng,
inodes: std.ArrayList(Inode) = .empty,
/// What processes see.
entries: std.ArrayList(Entry) = .empty,
/// What a crash leaves when nothing else of `changes` has reached the disk.
durable_entries: std.ArrayList(Entry) = .empty,
changes: std.ArrayList(Change) = .empty,
handles: std.ArrayList(?Open) = .empty,
/// Bytes of all files together.
capacity: u64 = std.math.maxInt(u64),
/// Operations that change something, so far.
operations: u64 = 0,
/// From then on nothing works any more, as if the machine had stopped.
stop_after: u64 = std.math.maxInt(u64),
/// Just this operation fails; a sync that fails has synced nothing.
fail_at: u64 = std.math.maxInt(u64),
fail_with: Error = error.DiskFailed,
syncs: u64 = 0,

const Page = [page_size]u8;

const Inode = struct {
    is_dir: bool,
    size: u64 = 0,
    /// What readers see; a page that is not here is a hole.
    pages: std.AutoHashMapUnmanaged(u64, *Page) = .empty,
    /// Of pages that changed since the last sync: what is on the disk for sure, null for a hole.
    synced: std.AutoHashMapUnmanaged(u64, ?*Page) = .empty,
    synced_size: u64 = 0,
};

const Entry = struct { dir: u32, name: [store.files.name_size_max]u8, name_size: usize, inode: u32 };

const Place = struct { dir: u32, name: []const u8 };

/// One change of names, done wholly or not at all.
const Change = struct {
    added: ?Entry = null,
    removed: ?Entry = null,

    fn touches(change: *const Change, dir: u32) bool {
        if (change.added) |entry| if (entry.dir == dir) return true;
        if (change.removed) |entry| if (entry.dir == dir) return true;
        return false;
    }
};

const Open = struct { inode: u32, mode: Mode, lock: enum { none, shared, exclusive } = .none };

pub fn init(gpa: std.mem.Allocator, seed: u64) error{OutOfMemory}!SimFiles {
    var sim: SimFiles = .{ .gpa = gpa, .prng = .init(seed) };
    try sim.inodes.append(gpa, .{ .is_dir = true });
    return sim;
}

pub fn deinit(sim: *SimFiles) void {
    for (sim.inodes.items) |*inode| sim.freeInode(inode);
    sim.inodes.deinit(sim.gpa);
    sim.entries.deinit(sim.gpa);
    sim.durable_entries.deinit(sim.gpa);
    sim.changes.deinit(sim.gpa);
    sim.handles.deinit(sim.gpa);
    sim.* = undefined;
}

pub fn files(sim: *SimFiles) store.Files {
    return .{ .context = sim, .vtable = &vtable };
}

/// The process is gone, the machine goes on: handles and locks are gone, all that was written is there.
pub fn endProcess(sim: *SimFiles) void {
    sim.handles.clearRetainingCapacity();
    sim.stop_after = std.math.maxInt(u64);
    sim.fail_at = std.math.maxInt(u64);
}

/// Power is cut and comes back.
pub fn crash(sim: *SimFiles) void {
    sim.endProcess();
    for (sim.changes.items) |*change| if (sim.prng.chance(1, 2)) sim.apply(&sim.durable_entries, change);
    sim.changes.clearRetainingCapacity();
    sim.entries.clearRetainingCapacity();
    sim.entries.appendSlice(sim.gpa, sim.durable_entries.items) catch @panic("no memory");
    for (sim.inodes.items) |*inode| if (!inode.is_dir) sim.tear(inode);
}

/// What is visible is what is durable: a good state to begin crash tests from.
pub fn syncAll(sim: *SimFiles) void {
    for (sim.inodes.items) |*inode| sim.settle(inode);
    for (sim.changes.items) |*change| sim.apply(&sim.durable_entries, change);
    sim.changes.clearRetainingCapacity();
}

/// Changes one bit of a file, as worn-out media do; the file has that byte.
pub fn flipBit(sim: *SimFiles, name: []const u8, offset: u64, bit: u3) void {
    const inode = &sim.inodes.items[sim.lookUp(name) orelse unreachable];
    assert(offset < inode.size);
    sim.pageOf(inode, offset / page_size)[@intCast(offset % page_size)] ^= @as(u8, 1) << bit;
}

/// A sector that was not synced is the old or the new one.
fn tear(sim: *SimFiles, inode: *Inode) void {
    var iterator = inode.synced.iterator();
    while (iterator.next()) |entry| {
        var page: Page = @splat(0);
        var any_from_page = false;
        const new = inode.pages.get(entry.key_ptr.*);
        const old = entry.value_ptr.*;
        for (0..sectors_per_page) |index| {
            const from = if (sim.prng.chance(1, 2)) new else old;
            const source = from orelse continue;
            any_from_page = true;
            @memcpy(page[index * sector_size ..][0..sector_size], source[index * sector_size ..][0..sector_size]);
        }
        if (any_from_page) {
            sim.pageOf(inode, entry.key_ptr.*).* = page;
        } else sim.dropPage(inode, entry.key_ptr.*);
        if (old) |kept| sim.gpa.destroy(kept);
    }
    inode.synced.clearRetainingCapacity();
    const least, const most = .{ @min(inode.size, inode.synced_size), @max(inode.size, inode.synced_size) };
    inode.size = switch (sim.prng.below(3)) {
        0 => least,
        1 => most,
        else => sim.prng.between(least, most),
    };
    sim.cut(inode);
    inode.synced_size = inode.size;
}

/// Nothing lies behind the end of a file.
fn cut(sim: *SimFiles, inode: *Inode) void {
    const last = inode.size / page_size;
    const within: usize = @intCast(inode.size % page_size);
    if (inode.pages.get(last)) |page| @memset(page[within..], 0);
    var keys: std.ArrayList(u64) = .empty;
    defer keys.deinit(sim.gpa);
    var iterator = inode.pages.keyIterator();
    while (iterator.next()) |key| if (key.* * page_size >= inode.size) keys.append(sim.gpa, key.*) catch @panic("no memory");
    for (keys.items) |key| sim.dropPage(inode, key);
}

fn settle(sim: *SimFiles, inode: *Inode) void {
    var iterator = inode.synced.valueIterator();
    while (iterator.next()) |old| if (old.*) |page| sim.gpa.destroy(page);
    inode.synced.clearRetainingCapacity();
    inode.synced_size = inode.size;
}

fn freeInode(sim: *SimFiles, inode: *Inode) void {
    sim.settle(inode);
    inode.synced.deinit(sim.gpa);
    var iterator = inode.pages.valueIterator();
    while (iterator.next()) |page| sim.gpa.destroy(page.*);
    inode.pages.deinit(sim.gpa);
}

fn pageOf(sim: *SimFiles, inode: *Inode, index: u64) *Page {
    const slot = inode.pages.getOrPut(sim.gpa, index) catch @panic("no memory");
    if (!slot.found_existing) {
        slot.value_ptr.* = sim.gpa.create(Page) catch @panic("no memory");
        slot.value_ptr.*.* = @splat(0);
    }
    return slot.value_ptr.*;
}

fn dropPage(sim: *SimFiles, inode: *Inode, index: u64) void {
    const removed = inode.pages.fetchRemove(index) orelse return;
    sim.gpa.destroy(removed.value);
}

/// Before a page changes: what was on the disk is kept, and now and then what was written before has got there by itself.
fn noteChange(sim: *SimFiles, inode: *Inode, index: u64) void {
    const slot = inode.synced.getOrPut(sim.gpa, index) catch @panic("no memory");
    const now = inode.pages.get(index);
    if (!slot.found_existing) {
        slot.value_ptr.* = if (now) |page| sim.copyOf(page) else null;
        return;
    }
    if (!sim.prng.chance(1, 4)) return;
    const there = slot.value_ptr.* orelse blk: {
        const page = sim.gpa.create(Page) catch @panic("no memory");
        page.* = @splat(0);
        slot.value_ptr.* = page;
        break :blk page;
    };
    for (0..sectors_per_page) |sector| {
        if (sim.prng.chance(1, 2)) continue;
        const kept = there[sector * sector_size ..][0..sector_size];
        if (now) |page| @memcpy(kept, page[sector * sector_size ..][0..sector_size]) else @memset(kept, 0);
    }
}

fn copyOf(sim: *SimFiles, page: *const Page) *Page {
    const copy = sim.gpa.create(Page) catch @panic("no memory");
    copy.* = page.*;
    return copy;
}

fn apply(sim: *SimFiles, entries: *std.ArrayList(Entry), change: *const Change) void {
    if (change.removed) |removed| {
        const place: Place = .{ .dir = removed.dir, .name = removed.name[0..removed.name_size] };
        if (indexOf(entries.items, place)) |index| _ = entries.swapRemove(index);
    }
    const added = change.added orelse return;
    const place: Place = .{ .dir = added.dir, .name = added.name[0..added.name_size] };
    if (indexOf(entries.items, place)) |index| {
        entries.items[index] = added;
    } else entries.append(sim.gpa, added) catch @panic("no memory");
}

fn note(sim: *SimFiles, made: Change) void {
    sim.apply(&sim.entries, &made);
    sim.changes.append(sim.gpa, made) catch @panic("no memory");
}

fn entryOf(place: Place, inode: u32) Entry {
    var entry: Entry = .{ .dir = place.dir, .name = undefined, .name_size = place.name.len, .inode = inode };
    @memcpy(entry.name[0..place.name.len], place.name);
    return entry;
}

fn indexOf(entries: []const Entry, place: Place) ?usize {
    for (entries, 0..) |*entry, index| {
        if (entry.dir == place.dir and std.mem.eql(u8, entry.name[0..entry.name_size], place.name)) return index;
    }
    return null;
}

/// The directory a name lies in, and its last part.
fn placeOf(sim: *SimFiles, name: []const u8) Error!Place {
    if (name.len == 0 or name.len > store.files.name_size_max) return error.NotFound;
    const dir, const last = if (std.mem.findScalarLast(u8, name, '/')) |at|
        .{ sim.lookUp(name[0..at]) orelse return error.NotFound, name[at + 1 ..] }
    else
        .{ root, name };
    if (last.len == 0 or !sim.inodes.items[dir].is_dir) return error.NotFound;
    return .{ .dir = dir, .name = last };
}

fn lookUp(sim: *const SimFiles, name: []const u8) ?u32 {
    var inode: u32 = root;
    if (name.len == 0) return inode;
    var parts = std.mem.splitScalar(u8, name, '/');
    while (parts.next()) |part| {
        const index = indexOf(sim.entries.items, .{ .dir = inode, .name = part }) orelse return null;
        inode = sim.entries.items[index].inode;
    }
    return inode;
}

/// Counts what changes something.
fn begin(sim: *SimFiles) Error!void {
    if (sim.operations >= sim.stop_after) return error.DiskFailed;
    sim.operations += 1;
    if (sim.operations - 1 == sim.fail_at) return sim.fail_with;
}

fn openOf(sim: *SimFiles, handle: Handle) *Open {
    return &sim.handles.items[@intCast(@backingInt(handle))].?;
}

fn inodeOf(sim: *SimFiles, handle: Handle) *Inode {
    return &sim.inodes.items[sim.openOf(handle).inode];
}

fn fromContext(context: *anyopaque) *SimFiles {
    return @ptrCast(@alignCast(context));
}

fn give(sim: *SimFiles, inode: u32, mode: Mode) Handle {
    for (sim.handles.items, 0..) |*slot, index| if (slot.* == null) {
        slot.* = .{ .inode = inode, .mode = mode };
        return @fromBackingInt(@as(i32, @intCast(index)));
    };
    sim.handles.append(sim.gpa, .{ .inode = inode, .mode = mode }) catch @panic("no memory");
    return @fromBackingInt(@as(i32, @intCast(sim.handles.items.len - 1)));
}

/// Bytes of all files that have a name or are open.
pub fn usedBytes(sim: *const SimFiles) u64 {
    var pages: u64 = 0;
    for (sim.inodes.items, 0..) |*inode, index| {
        const named = for (sim.entries.items) |*entry| {
            if (entry.inode == index) break true;
        } else for (sim.handles.items) |slot| {
            if (slot) |opened| if (opened.inode == index) break true;
        } else false;
        if (named) pages += inode.pages.count();
    }
    return pages * page_size;
}

const vtable: store.Files.VTable = .{
    .open = open,
    .create = create,
    .close = close,
    .size = size,
    .setSize = setSize,
    .read = read,
    .write = write,
    .sync = sync,
    .punch = punch,
    .nextData = nextData,
    .allocated = allocated,
    .tryLock = tryLock,
    .rename = rename,
    .remove = remove,
    .makeDir = makeDir,
    .syncDir = syncDir,
    .nextName = nextName,
    .freeBytes = freeBytes,
};

fn open(context: *anyopaque, name: []const u8, mode: Mode) Error!Handle {
    const sim = fromContext(context);
    if (sim.operations >= sim.stop_after) return error.DiskFailed;
    const inode = sim.lookUp(name) orelse return error.NotFound;
    if (sim.inodes.items[inode].is_dir) return error.DiskFailed;
    return sim.give(inode, mode);
}

fn addInode(sim: *SimFiles, name: []const u8, is_dir: bool) Error!u32 {
    const place = try sim.placeOf(name);
    if (indexOf(sim.entries.items, place) != null) return error.Exists;
    try sim.begin();
    const inode: u32 = @intCast(sim.inodes.items.len);
    sim.inodes.append(sim.gpa, .{ .is_dir = is_dir }) catch @panic("no memory");
    sim.note(.{ .added = entryOf(place, inode) });
    return inode;
}

fn create(context: *anyopaque, name: []const u8) Error!Handle {
    const sim = fromContext(context);
    return sim.give(try sim.addInode(name, false), .write);
}

fn makeDir(context: *anyopaque, name: []const u8) Error!void {
    _ = try fromContext(context).addInode(name, true);
}

/// A handle of before a crash or an end of the process is gone already.
fn close(context: *anyopaque, handle: Handle) void {
    const sim = fromContext(context);
    const index: usize = @intCast(@backingInt(handle));
    if (index < sim.handles.items.len) sim.handles.items[index] = null;
}

fn size(context: *anyopaque, handle: Handle) Error!u64 {
    return fromContext(context).inodeOf(handle).size;
}

fn setSize(context: *anyopaque, handle: Handle, bytes: u64) Error!void {
    const sim = fromContext(context);
    if (sim.openOf(handle).mode != .write) return error.Denied;
    try sim.begin();
    const inode = sim.inodeOf(handle);
    if (bytes < inode.size) {
        var iterator = inode.pages.keyIterator();
        while (iterator.next()) |key| if ((key.* + 1) * page_size > bytes) sim.noteChange(inode, key.*);
    }
    inode.size = bytes;
    sim.cut(inode);
}

fn read(context: *anyopaque, handle: Handle, buffer: []u8, offset: u64) Error!usize {
    const sim = fromContext(context);
    if (sim.operations >= sim.stop_after) return error.DiskFailed;
    const inode = sim.inodeOf(handle);
    if (offset >= inode.size) return 0;
    const count: usize = @intCast(@min(buffer.len, inode.size - offset));
    var filled: usize = 0;
    while (filled < count) {
        const at = offset + filled;
        const within: usize = @intCast(at % page_size);
        const part = @min(count - filled, page_size - within);
        const into = buffer[filled..][0..part];
        if (inode.pages.get(at / page_size)) |page| @memcpy(into, page[within..][0..part]) else @memset(into, 0);
        filled += part;
    }
    return count;
}

/// A write for which there is no room has not begun.
fn write(context: *anyopaque, handle: Handle, bytes: []const u8, offset: u64) Error!void {
    const sim = fromContext(context);
    if (sim.openOf(handle).mode != .write) return error.Denied;
    try sim.begin();
    const inode = sim.inodeOf(handle);
    if (sim.capacity != std.math.maxInt(u64)) {
        if (sim.usedBytes() + newPages(inode, offset, bytes.len) * page_size > sim.capacity) return error.NoSpace;
    }
    var written: usize = 0;
    while (written < bytes.len) {
        const at = offset + written;
        const within: usize = @intCast(at % page_size);
        const part = @min(bytes.len - written, page_size - within);
        sim.noteChange(inode, at / page_size);
        @memcpy(sim.pageOf(inode, at / page_size)[within..][0..part], bytes[written..][0..part]);
        written += part;
    }
    inode.size = @max(inode.size, offset + bytes.len);
}

fn newPages(inode: *const Inode, offset: u64, count: usize) u64 {
    if (count == 0) return 0;
    var pages: u64 = 0;
    var index = offset / page_size;
    while (index <= (offset + count - 1) / page_size) : (index += 1) pages += @intFromBool(!inode.pages.contains(index));
    return pages;
}

fn sync(context: *anyopaque, handle: Handle) Error!void {
    const sim = fromContext(context);
    try sim.begin();
    sim.syncs += 1;
    sim.settle(sim.inodeOf(handle));
}

fn punch(context: *anyopaque, handle: Handle, offset: u64, bytes: u64) Error!void {
    const sim = fromContext(context);
    if (sim.openOf(handle).mode != .write) return error.Denied;
    try sim.begin();
    const inode = sim.inodeOf(handle);
    const end = @min(offset +| bytes, inode.size);
    var at = offset;
    while (at < end) {
        const within: usize = @intCast(at % page_size);
        const part: usize = @intCast(@min(end - at, page_size - within));
        const index = at / page_size;
        at += part;
        const page = inode.pages.get(index) orelse continue;
        sim.noteChange(inode, index);
        const is_whole = part == page_size or (within == 0 and at == inode.size);
        if (is_whole) sim.dropPage(inode, index) else @memset(page[within..][0..part], 0);
    }
}

fn nextData(context: *anyopaque, handle: Handle, offset: u64) Error!?u64 {
    const inode = fromContext(context).inodeOf(handle);
    if (offset >= inode.size) return null;
    var least: ?u64 = null;
    var iterator = inode.pages.keyIterator();
    while (iterator.next()) |key| {
        if ((key.* + 1) * page_size <= offset) continue;
        const at = @max(offset, key.* * page_size);
        least = @min(least orelse at, at);
    }
    return least;
}

fn allocated(context: *anyopaque, handle: Handle) Error!u64 {
    return @as(u64, fromContext(context).inodeOf(handle).pages.count()) * page_size;
}

fn tryLock(context: *anyopaque, handle: Handle, exclusive: bool) Error!bool {
    const sim = fromContext(context);
    const wanted = sim.openOf(handle);
    for (sim.handles.items) |*slot| {
        const other = &(slot.* orelse continue);
        if (other == wanted or other.inode != wanted.inode or other.lock == .none) continue;
        if (exclusive or other.lock == .exclusive) return false;
    }
    wanted.lock = if (exclusive) .exclusive else .shared;
    return true;
}

fn rename(context: *anyopaque, from: []const u8, to: []const u8) Error!void {
    const sim = fromContext(context);
    const old = try sim.placeOf(from);
    const new = try sim.placeOf(to);
    const index = indexOf(sim.entries.items, old) orelse return error.NotFound;
    const moved = sim.entries.items[index];
    if (indexOf(sim.entries.items, new)) |there| {
        const target = sim.entries.items[there].inode;
        if (target == moved.inode) return;
        if (sim.inodes.items[target].is_dir and (!sim.inodes.items[moved.inode].is_dir or sim.hasNames(target))) return error.Exists;
    }
    try sim.begin();
    sim.note(.{ .removed = moved, .added = entryOf(new, moved.inode) });
}

fn hasNames(sim: *const SimFiles, dir: u32) bool {
    for (sim.entries.items) |*entry| if (entry.dir == dir) return true;
    return false;
}

fn remove(context: *anyopaque, name: []const u8) Error!void {
    const sim = fromContext(context);
    const index = indexOf(sim.entries.items, try sim.placeOf(name)) orelse return error.NotFound;
    if (sim.hasNames(sim.entries.items[index].inode)) return error.Exists;
    try sim.begin();
    sim.note(.{ .removed = sim.entries.items[index] });
}

fn syncDir(context: *anyopaque, name: []const u8) Error!void {
    const sim = fromContext(context);
    const dir = sim.lookUp(name) orelse return error.NotFound;
    if (!sim.inodes.items[dir].is_dir) return error.NotFound;
    try sim.begin();
    sim.syncs += 1;
    var kept: usize = 0;
    for (sim.changes.items) |made| {
        if (made.touches(dir)) {
            sim.apply(&sim.durable_entries, &made);
        } else {
            sim.changes.items[kept] = made;
            kept += 1;
        }
    }
    sim.changes.shrinkRetainingCapacity(kept);
}

fn nextName(context: *anyopaque, dir: []const u8, above: []const u8, into: *store.files.Name) Error!?[]const u8 {
    const sim = fromContext(context);
    const inode = sim.lookUp(dir) orelse return error.NotFound;
    if (!sim.inodes.items[inode].is_dir) return error.NotFound;
    var least: ?[]const u8 = null;
    for (sim.entries.items) |*entry| {
        if (entry.dir != inode) continue;
        const name = entry.name[0..entry.name_size];
        if (std.mem.order(u8, name, above) != .gt) continue;
        if (least) |known| if (std.mem.order(u8, name, known) != .lt) continue;
        least = name;
    }
    const name = least orelse return null;
    @memcpy(into[0..name.len], name);
    return into[0..name.len];
}

fn freeBytes(context: *anyopaque) Error!u64 {
    const sim = fromContext(context);
    return sim.capacity -| sim.usedBytes();
}

test {
    _ = @import("sim_files_test.zig");
}
