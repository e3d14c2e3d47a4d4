//! Interface of everything that reads as a disk: a raw file, a version of the store, a write layer
//! above either. A read returns all of the requested bytes, and only correct ones, or an error.

const std = @import("std");
const assert = std.debug.assert;

/// `Damaged`: the bytes differ from those that were sealed. `Lost`: a write layer is missing or
/// truncated; the bytes below it are never returned instead.
pub const ReadError = error{ BeyondTheEnd, ReadFailed, Damaged, Lost };

pub const BlockSource = @This();

context: *anyopaque,
vtable: *const VTable,
/// Bytes; a multiple of 512, not 0.
size: u64,

pub const VTable = struct {
    read: *const fn (context: *anyopaque, buffer: []u8, offset: u64) ReadError!void,
    /// Null if every read may have to wait.
    readNow: ?*const fn (context: *anyopaque, buffer: []u8, offset: u64) ReadError!bool = null,
};

/// Fills `buffer` from byte `offset` of the disk, completely or not at all.
pub fn read(source: *const BlockSource, buffer: []u8, offset: u64) ReadError!void {
    assert(source.size > 0);
    if (buffer.len > source.size or offset > source.size - buffer.len) return error.BeyondTheEnd;
    return source.vtable.read(source.context, buffer, offset);
}

/// Reads blocks that are in memory and already checked: waits for no disk and computes no hash
/// of a block. Returns false if a `read` is needed; `buffer` is undefined then.
pub fn readNow(source: *const BlockSource, buffer: []u8, offset: u64) ReadError!bool {
    assert(source.size > 0);
    if (buffer.len > source.size or offset > source.size - buffer.len) return error.BeyondTheEnd;
    const now = source.vtable.readNow orelse return false;
    return now(source.context, buffer, offset);
}
