//! Files of tests that note how they are read: which bytes are asked for, read ahead, or found in
//! memory. Everything else is done by real files. One spy at a time in a thread.

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
threadlocal var below: *const Files.VTable = undefined;

pub fn init(on: *LinuxFiles) SpiedFiles {
    below = on.files().vtable;
    clear();
    var vtable = below.*;
    vtable.read = read;
    vtable.readNow = readNow;
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
}

fn read(context: *anyopaque, handle: Files.Handle, buffer: []u8, offset: u64) Files.Error!usize {
    reads.append(.{ .offset = offset, .size = buffer.len }) catch {};
    return below.read(context, handle, buffer, offset);
}

fn readNow(context: *anyopaque, handle: Files.Handle, buffer: []u8, offset: u64) Files.Error!usize {
    if (in_memory == 0) return 0;
    in_memory -= 1;
    return below.read(context, handle, buffer, offset);
}

fn prefetch(_: *anyopaque, _: Files.Handle, offset: u64, size: u64) void {
    prefetches.append(.{ .offset = offset, .size = size }) catch {};
}
