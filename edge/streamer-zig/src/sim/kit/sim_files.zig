//! `store.Files` in memory, as a disk with only the guaranteed durability: at a crash, unsynced
//! writes are lost or kept, sector by sector (512 bytes) and name by name, in any mixture, and may
//! have reached the disk at any moment before. The same seed gives the same disk.
//!
//! To crash in the middle of an operation, a test sets `stop_after`: after so many changing calls
//! all further ones fail; then it calls `crash` and opens again.

const std = @import("std");
const base = @import("base");
const sim_inode = @import("sim_inode.zig");
const store = @import("store");
const assert = std.debug.assert;

const Error = store.files.Error;
const Handle = store.files.Handle;
const Mode = store.files.Mode;
const Inode = sim_inode.Inode;
const page_size = sim_inode.page_size;

pub const SimFiles = @This();

const root: u32 = 0;

gpa: std.mem.Allocator,
pages: sim_inode.Pages,
inodes: std.ArrayList(Inode) = .empty,
/// What processes see.
entries: std.ArrayList(Entry) = .empty,
/// What a crash leaves if none of `changes` has reached the disk.
durable_entries: std.ArrayList(Entry) = .empty,
changes: std.ArrayList(Change) = .empty,
handles: std.ArrayList(?Open) = .empty,
/// A mutant: a call that does nothing and reports success.
skipped_call: ?SkippedCall = null,
/// Bytes of all files together.
capacity: u64 = std.math.maxInt(u64),
/// Changing calls so far.
operations: u64 = 0,
/// All calls fail from then on, as if the machine had stopped.
stop_after: u64 = std.math.maxInt(u64),
/// Only this call fails; a sync that fails has synced nothing.
fail_at: u64 = std.math.maxInt(u64),
fail_with: Error = error.DiskFailed,
/// All calls that may fail, changing or not.
calls: u64 = 0,
/// Only this one of `calls` fails.
fail_call: u64 = std.math.maxInt(u64),
/// Handles that were closed a second time: another file may have had them by then.
closed_again: u64 = 0,
syncs: u64 = 0,
reads_now: u64 = 0,

const Entry = struct {
    dir: u32,
    name: [store.files.name_size_max]u8,
    name_size: usize,
    inode: u32,
};

/// Applies to calls for names that contain this; "" for all.
pub const SkippedCall = struct {
    call: enum { sync, sync_dir, punch, lock, write },
    name: []const u8,
};

pub const Loss = sim_inode.Loss;

const DirEntry = struct { dir: u32, name: []const u8 };

/// One change of names, atomic.
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
    var sim: SimFiles = .{ .gpa = gpa, .pages = .{ .gpa = gpa, .prng = .init(seed) } };
    try sim.inodes.append(gpa, .{ .is_dir = true });
    return sim;
}

pub fn deinit(sim: *SimFiles) void {
    for (sim.inodes.items) |*inode| {
        sim_inode.emptyInode(&sim.pages, inode);
        inode.slots.deinit(sim.gpa);
        inode.noted.deinit(sim.gpa);
    }
    sim.pages.deinit();
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

/// The process has ended and the machine runs: handles and locks are gone, and all writes are
/// visible.
pub fn endProcess(sim: *SimFiles) void {
    sim.handles.clearRetainingCapacity();
    sim.stop_after = std.math.maxInt(u64);
    sim.fail_at = std.math.maxInt(u64);
    sim.fail_call = std.math.maxInt(u64);
}

/// Another program continues in the process: everything but these handles is closed.
pub fn exchangeProgram(sim: *SimFiles, left_open: []const Handle) void {
    for (sim.handles.items, 0..) |*slot, index| {
        const handle: Handle = @fromBackingInt(@as(i32, @intCast(index)));
        if (std.mem.findScalar(Handle, left_open, handle) == null) slot.* = null;
    }
}

pub fn openHandles(sim: *const SimFiles) u64 {
    var count: u64 = 0;
    for (sim.handles.items) |slot| count += @intFromBool(slot != null);
    return count;
}

/// Power is cut and comes back.
pub fn crash(sim: *SimFiles) void {
    sim.crashWith(.any);
}

pub fn crashWith(sim: *SimFiles, loss: Loss) void {
    sim.endProcess();
    for (sim.changes.items) |*change| {
        const is_kept = switch (loss) {
            .any => sim.pages.prng.chance(1, 2),
            .all, .names => false,
            .nothing, .bytes => true,
        };
        if (is_kept) sim.apply(&sim.durable_entries, change);
    }
    sim.changes.clearRetainingCapacity();
    sim.entries.clearRetainingCapacity();
    sim.entries.appendSlice(sim.gpa, sim.durable_entries.items) catch @panic("no memory");
    for (sim.inodes.items, 0..) |*inode, index| {
        if (inode.is_dir) continue;
        if (sim.isNamed(index))
            sim_inode.tear(&sim.pages, inode, loss)
        else
            sim_inode.emptyInode(&sim.pages, inode);
    }
}

fn isNamed(sim: *const SimFiles, inode: usize) bool {
    for (sim.entries.items) |*entry| if (entry.inode == inode) return true;
    return false;
}

/// Hash of all names and bytes as processes see them, independent of their order.
pub fn hashOfDisk(sim: *const SimFiles) u64 {
    var sum: u64 = 0;
    for (sim.entries.items) |*entry| {
        const inode = &sim.inodes.items[entry.inode];
        var hash: std.hash.Wyhash = .init(inode.size);
        // Names below a directory's, which are few: its own name makes them unique.
        hash.update(sim.inodes.items[entry.dir].made_as.constSlice());
        hash.update("/");
        hash.update(entry.name[0..entry.name_size]);
        for (inode.slots.items, 0..) |*slot, index| {
            const page = slot.now orelse continue;
            hash.update(std.mem.asBytes(&index));
            hash.update(page);
        }
        sum +%= hash.final();
    }
    return sum;
}

/// Makes the visible state durable: a good start for crash tests.
pub fn syncAll(sim: *SimFiles) void {
    for (sim.inodes.items) |*inode| sim_inode.settle(&sim.pages, inode);
    for (sim.changes.items) |*change| sim.apply(&sim.durable_entries, change);
    sim.changes.clearRetainingCapacity();
}

/// Flips one bit of a file, as worn-out media do; the file has that byte.
pub fn flipBit(sim: *SimFiles, name: []const u8, offset: u64, bit: u3) void {
    const inode = &sim.inodes.items[sim.lookUp(name) orelse unreachable];
    assert(offset < inode.size);
    sim_inode.pageOf(
        &sim.pages,
        inode,
        offset / page_size,
    )[@intCast(offset % page_size)] ^= @as(u8, 1) << bit;
}

fn apply(sim: *SimFiles, entries: *std.ArrayList(Entry), change: *const Change) void {
    if (change.removed) |removed| {
        const place: DirEntry = .{ .dir = removed.dir, .name = removed.name[0..removed.name_size] };
        if (indexOf(entries.items, place)) |index| _ = entries.swapRemove(index);
    }
    const added = change.added orelse return;
    const place: DirEntry = .{ .dir = added.dir, .name = added.name[0..added.name_size] };
    if (indexOf(entries.items, place)) |index| {
        entries.items[index] = added;
    } else entries.append(sim.gpa, added) catch @panic("no memory");
}

fn note(sim: *SimFiles, made: Change) void {
    sim.apply(&sim.entries, &made);
    sim.changes.append(sim.gpa, made) catch @panic("no memory");
}

fn entryOf(place: DirEntry, inode: u32) Entry {
    var entry: Entry = .{
        .dir = place.dir,
        .name = undefined,
        .name_size = place.name.len,
        .inode = inode,
    };
    @memcpy(entry.name[0..place.name.len], place.name);
    return entry;
}

fn indexOf(entries: []const Entry, place: DirEntry) ?usize {
    for (entries, 0..) |*entry, index| {
        if (entry.dir == place.dir and std.mem.eql(
            u8,
            entry.name[0..entry.name_size],
            place.name,
        )) return index;
    }
    return null;
}

/// Splits a name into its directory and its last part.
fn placeOf(sim: *SimFiles, name: []const u8) Error!DirEntry {
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
        const index = indexOf(sim.entries.items, .{ .dir = inode, .name = part }) orelse
            return null;
        inode = sim.entries.items[index].inode;
    }
    return inode;
}

/// Counts all calls.
fn called(context: *anyopaque) Error!*SimFiles {
    const sim = fromContext(context);
    sim.calls += 1;
    return if (sim.calls - 1 == sim.fail_call) sim.fail_with else sim;
}

/// Counts changing calls.
fn begin(sim: *SimFiles) Error!void {
    if (sim.operations >= sim.stop_after) return error.DiskFailed;
    sim.operations += 1;
    if (sim.operations - 1 == sim.fail_at) return sim.fail_with;
}

fn isSkipped(sim: *SimFiles, call: @FieldType(SkippedCall, "call"), handle: Handle) bool {
    const skipped_call = sim.skipped_call orelse return false;
    if (skipped_call.call != call) return false;
    const made_as = sim.inodeOf(handle).made_as.constSlice();
    return std.mem.find(u8, made_as, skipped_call.name) != null;
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

/// The sizes of all files that have a name.
pub fn namedBytes(sim: *const SimFiles) u64 {
    var bytes: u64 = 0;
    for (sim.entries.items) |*entry| bytes += sim.inodes.items[entry.inode].size;
    return bytes;
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
        if (named) pages += inode.page_count;
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
    .readNow = readNow,
    .prefetch = prefetch,
    .write = write,
    .sync = sync,
    .punch = punch,
    .nextData = nextData,
    .allocated = allocated,
    .tryLock = tryLock,
    .rename = rename,
    .link = link,
    .remove = remove,
    .makeDir = makeDir,
    .syncDir = syncDir,
    .nextName = nextName,
    .freeBytes = freeBytes,
};

fn open(context: *anyopaque, name: []const u8, mode: Mode) Error!Handle {
    const sim = try called(context);
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
    sim.inodes.append(sim.gpa, .{
        .is_dir = is_dir,
        .made_as = @TypeOf(sim.inodes.items[0].made_as).fromSlice(name) catch unreachable,
    }) catch @panic("no memory");
    sim.note(.{ .added = entryOf(place, inode) });
    return inode;
}

fn create(context: *anyopaque, name: []const u8) Error!Handle {
    const sim = try called(context);
    return sim.give(try sim.addInode(name, false), .write);
}

fn makeDir(context: *anyopaque, name: []const u8) Error!void {
    _ = try (try called(context)).addInode(name, true);
}

/// A handle from before a crash or the end of the process is closed already.
fn close(context: *anyopaque, handle: Handle) void {
    const sim = fromContext(context);
    const index: usize = @intCast(@backingInt(handle));
    if (index >= sim.handles.items.len) return;
    if (sim.handles.items[index] == null) sim.closed_again += 1;
    sim.handles.items[index] = null;
}

fn size(context: *anyopaque, handle: Handle) Error!u64 {
    return (try called(context)).inodeOf(handle).size;
}

fn setSize(context: *anyopaque, handle: Handle, bytes: u64) Error!void {
    const sim = try called(context);
    if (sim.openOf(handle).mode != .write) return error.Denied;
    try sim.begin();
    const inode = sim.inodeOf(handle);
    if (bytes < inode.size) {
        for (inode.slots.items, 0..) |slot, index| if (slot.now != null and
            (index + 1) * page_size > bytes) sim_inode.noteChange(&sim.pages, inode, index);
    }
    inode.size = bytes;
    sim_inode.cut(&sim.pages, inode);
}

fn read(context: *anyopaque, handle: Handle, buffer: []u8, offset: u64) Error!usize {
    const sim = try called(context);
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
        if (inode.page(at / page_size)) |page| @memcpy(
            into,
            page[within..][0..part],
        ) else @memset(into, 0);
        filled += part;
    }
    return count;
}

/// Every third read must wait.
fn readNow(context: *anyopaque, handle: Handle, buffer: []u8, offset: u64) Error!usize {
    const sim = fromContext(context);
    sim.reads_now += 1;
    return if (sim.reads_now % 3 == 0) 0 else read(context, handle, buffer, offset);
}

fn prefetch(_: *anyopaque, _: Handle, _: u64, _: u64) void {}

/// A write that does not fit does not begin.
fn write(context: *anyopaque, handle: Handle, bytes: []const u8, offset: u64) Error!void {
    const sim = try called(context);
    if (sim.openOf(handle).mode != .write) return error.Denied;
    try sim.begin();
    if (sim.isSkipped(.write, handle)) return;
    const inode = sim.inodeOf(handle);
    if (sim.capacity != std.math.maxInt(u64)) {
        if (sim.usedBytes() +
            newPages(inode, offset, bytes.len) * page_size > sim.capacity) return error.NoSpace;
    }
    var written: usize = 0;
    while (written < bytes.len) {
        const at = offset + written;
        const within: usize = @intCast(at % page_size);
        const part = @min(bytes.len - written, page_size - within);
        sim_inode.noteChange(&sim.pages, inode, at / page_size);
        @memcpy(
            sim_inode.pageOf(&sim.pages, inode, at / page_size)[within..][0..part],
            bytes[written..][0..part],
        );
        written += part;
    }
    inode.size = @max(inode.size, offset + bytes.len);
}

fn newPages(inode: *const Inode, offset: u64, count: usize) u64 {
    if (count == 0) return 0;
    var pages: u64 = 0;
    var index = offset / page_size;
    while (index <= (offset +
        count - 1) / page_size) : (index += 1) pages += @intFromBool(inode.page(index) == null);
    return pages;
}

fn sync(context: *anyopaque, handle: Handle) Error!void {
    const sim = try called(context);
    try sim.begin();
    sim.syncs += 1;
    if (sim.isSkipped(.sync, handle)) return;
    sim_inode.settle(&sim.pages, sim.inodeOf(handle));
}

fn punch(context: *anyopaque, handle: Handle, offset: u64, bytes: u64) Error!void {
    const sim = try called(context);
    if (sim.openOf(handle).mode != .write) return error.Denied;
    try sim.begin();
    if (sim.isSkipped(.punch, handle)) return;
    const inode = sim.inodeOf(handle);
    const end = @min(offset +| bytes, inode.size);
    var at = offset;
    while (at < end) {
        const within: usize = @intCast(at % page_size);
        const part: usize = @intCast(@min(end - at, page_size - within));
        const index = at / page_size;
        at += part;
        const page = inode.page(index) orelse continue;
        sim_inode.noteChange(&sim.pages, inode, index);
        const is_whole = part == page_size or (within == 0 and at == inode.size);
        if (is_whole) sim_inode.dropPage(&sim.pages, inode, index) else @memset(
            page[within..][0..part],
            0,
        );
    }
}

fn nextData(context: *anyopaque, handle: Handle, offset: u64) Error!?u64 {
    const inode = (try called(context)).inodeOf(handle);
    if (offset >= inode.size) return null;
    for (@min(offset / page_size, inode.slots.items.len)..inode.slots.items.len) |index| {
        if (inode.slots.items[index].now != null) return @max(offset, index * page_size);
    }
    return null;
}

fn allocated(context: *anyopaque, handle: Handle) Error!u64 {
    return @as(u64, (try called(context)).inodeOf(handle).page_count) * page_size;
}

fn tryLock(context: *anyopaque, handle: Handle, exclusive: bool) Error!bool {
    const sim = try called(context);
    if (sim.isSkipped(.lock, handle)) return true;
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
    const sim = try called(context);
    const old = try sim.placeOf(from);
    const new = try sim.placeOf(to);
    const index = indexOf(sim.entries.items, old) orelse return error.NotFound;
    const moved = sim.entries.items[index];
    if (indexOf(sim.entries.items, new)) |there| {
        const target = sim.entries.items[there].inode;
        if (target == moved.inode) return;
        if (sim.inodes.items[target].is_dir and
            (!sim.inodes.items[moved.inode].is_dir or sim.hasNames(target))) return error.Exists;
    }
    try sim.begin();
    sim.note(.{ .removed = moved, .added = entryOf(new, moved.inode) });
}

fn link(context: *anyopaque, from: []const u8, to: []const u8) Error!void {
    const sim = try called(context);
    const index = indexOf(sim.entries.items, try sim.placeOf(from)) orelse return error.NotFound;
    const new = try sim.placeOf(to);
    if (indexOf(sim.entries.items, new) != null) return error.Exists;
    try sim.begin();
    sim.note(.{ .added = entryOf(new, sim.entries.items[index].inode) });
}

fn hasNames(sim: *const SimFiles, dir: u32) bool {
    for (sim.entries.items) |*entry| if (entry.dir == dir) return true;
    return false;
}

fn remove(context: *anyopaque, name: []const u8) Error!void {
    const sim = try called(context);
    const index = indexOf(sim.entries.items, try sim.placeOf(name)) orelse return error.NotFound;
    if (sim.hasNames(sim.entries.items[index].inode)) return error.Exists;
    try sim.begin();
    sim.note(.{ .removed = sim.entries.items[index] });
}

fn syncDir(context: *anyopaque, name: []const u8) Error!void {
    const sim = try called(context);
    const dir = sim.lookUp(name) orelse return error.NotFound;
    if (!sim.inodes.items[dir].is_dir) return error.NotFound;
    try sim.begin();
    sim.syncs += 1;
    if (sim.skipped_call) |skipped_call| if (skipped_call.call == .sync_dir and std.mem.startsWith(
        u8,
        name,
        skipped_call.name,
    )) return;
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

fn nextName(
    context: *anyopaque,
    dir: []const u8,
    above: []const u8,
    into: *store.files.Name,
) Error!?[]const u8 {
    const sim = try called(context);
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
    const sim = try called(context);
    return sim.capacity -| sim.usedBytes();
}

test {
    _ = @import("sim_files_test.zig");
}
