//! Files of tests that note how they are used: which bytes are asked for, read ahead, or found in
//! memory, and how many calls there are. Everything is done by real files. One spy at a time in a
//! thread.

const std = @import("std");
const base = @import("base");
const Files = @import("files.zig");
const LinuxFiles = @import("linux_files.zig");

pub const SpiedFiles = @This();

pub const ByteRange = struct { offset: u64, size: u64 };
const Ranges = base.BoundedArray(ByteRange, 64);

vtable: Files.VTable,
on: *LinuxFiles,

/// Reads of a file and bytes read ahead, in order.
pub threadlocal var reads: Ranges = .empty;
pub threadlocal var prefetches: Ranges = .empty;
/// Calls that find their bytes in memory before one does not; the others wait for the disk.
pub threadlocal var in_memory: u32 = 0;
/// Calls since `clear`.
pub threadlocal var calls: Calls = .{};

pub const Calls = struct { reads: u32 = 0, writes: u32 = 0, syncs: u32 = 0 };

threadlocal var below: *const Files.VTable = undefined;

pub fn init(on: *LinuxFiles) SpiedFiles {
    below = on.files().vtable;
    clear();
    var vtable = below.*;
    vtable.read = read;
    vtable.readNow = readNow;
    vtable.write = write;
    vtable.sync = sync;
    vtable.prefetch = prefetch;
    return .{ .vtable = vtable, .on = on };
}

pub fn files(spied: *const SpiedFiles) Files {
    return .{ .context = spied.on, .vtable = &spied.vtable };
}

pub fn clear() void {
    reads = .empty;
    prefetches = .empty;
    in_memory = 0;
    calls = .{};
}

fn read(context: *anyopaque, handle: Files.Handle, buffer: []u8, offset: u64) Files.Error!usize {
    reads.append(.{ .offset = offset, .size = buffer.len }) catch {};
    calls.reads += 1;
    return below.read(context, handle, buffer, offset);
}

fn readNow(context: *anyopaque, handle: Files.Handle, buffer: []u8, offset: u64) Files.Error!usize {
    if (in_memory == 0) return 0;
    in_memory -= 1;
    calls.reads += 1;
    return below.read(context, handle, buffer, offset);
}

fn write(
    context: *anyopaque,
    handle: Files.Handle,
    bytes: []const u8,
    offset: u64,
) Files.Error!void {
    calls.writes += 1;
    return below.write(context, handle, bytes, offset);
}

fn sync(context: *anyopaque, handle: Files.Handle) Files.Error!void {
    calls.syncs += 1;
    return below.sync(context, handle);
}

fn prefetch(_: *anyopaque, _: Files.Handle, offset: u64, size: u64) void {
    prefetches.append(.{ .offset = offset, .size = size }) catch {};
}
