//! Packed answers at the device (packages/proto/STREAM.md, "Packed answers"): what has arrived
//! whole is unpacked into its read's buffer.

const assert = @import("std").debug.assert;
const packed_answer = @import("../packed.zig");
const PendingRead = @import("pending_read.zig");
const StreamClient = @import("client.zig");

pub const unit_size = packed_answer.unit_size;

/// The packed answer is at the front of the buffer that it fills. Returns false if it does not
/// unpack; the buffer then has arbitrary bytes.
pub fn unpack(client: *StreamClient, read: *PendingRead) bool {
    assert(read.packed_size > 0 and read.packed_size < read.buffer.len);
    const from = client.packed_answer[0..read.packed_size];
    @memcpy(from, read.buffer[0..read.packed_size]);
    packed_answer.unpack(read.buffer, read.offset, from) catch return false;
    client.statistics.unpacked_bytes += read.buffer.len;
    client.statistics.packed_bytes += read.packed_size;
    return true;
}
