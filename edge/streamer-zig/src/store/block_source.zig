//! What can be read as a disk: a raw file, a version of the store, a write layer above either. Readers ask for any range of bytes
//! and get all of it or an error; what comes is right or does not come.

const std = @import("std");
const assert = std.debug.assert;

/// `Damaged`: the bytes are not those that were sealed. `Lost`: a write layer that is gone or cut short; bytes below it are never given
/// in its place.
pub const ReadError = error{ BeyondTheEnd, ReadFailed, Damaged, Lost };

pub const BlockSource = struct {
    context: *anyopaque,
    vtable: *const VTable,
    /// Bytes; a multiple of 512, not 0.
    size: u64,

    pub const VTable = struct {
        read: *const fn (context: *anyopaque, buffer: []u8, offset: u64) ReadError!void,
        /// Null: every read may have to wait.
        readNow: ?*const fn (context: *anyopaque, buffer: []u8, offset: u64) ReadError!bool = null,
    };

    /// Fills `buffer` from byte `offset` of the disk, whole or not at all.
    pub fn read(source: *const BlockSource, buffer: []u8, offset: u64) ReadError!void {
        assert(source.size > 0);
        if (buffer.len > source.size or offset > source.size - buffer.len) return error.BeyondTheEnd;
        return source.vtable.read(source.context, buffer, offset);
    }

    /// The same of what lies in memory and has been found right before: waits for no disk, and computes no hash of a block. False: it takes
    /// a `read`, and `buffer` holds anything.
    pub fn readNow(source: *const BlockSource, buffer: []u8, offset: u64) ReadError!bool {
        assert(source.size > 0);
        if (buffer.len > source.size or offset > source.size - buffer.len) return error.BeyondTheEnd;
        const now = source.vtable.readNow orelse return false;
        return now(source.context, buffer, offset);
    }
};
