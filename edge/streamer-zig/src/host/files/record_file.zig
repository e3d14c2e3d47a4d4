//! Reading framed records (core/uplink/record_frame.zig) one after another from a file of this system.

const record_frame = @import("core").uplink.record_frame;
const sys = @import("../sys.zig");

pub const header_size = record_frame.header_size;
pub const payload_size_max = record_frame.payload_size_max;
pub const frame_size_max = record_frame.frame_size_max;
pub const Record = record_frame.Record;
pub const encode = record_frame.encode;

/// Reads records one after another from a file.
pub const Reader = struct {
    fd: i32,
    offset: u64 = 0,
    buffer: *[frame_size_max]u8,

    /// The next whole record; its payload is valid until the next call. Null at the end and at
    /// damage.
    pub fn next(reader: *Reader) sys.Error!?Record {
        const size = try sys.readAt(reader.fd, reader.buffer, reader.offset);
        const record = record_frame.decode(reader.buffer[0..size]) orelse return null;
        reader.offset += record.frame_size;
        return record;
    }
};
