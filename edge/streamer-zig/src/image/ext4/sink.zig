//! Where a new file system is written: a file whose unwritten bytes are zeros.

pub const Sink = @This();

pub const Error = error{WriteFailed};

context: *anyopaque,
writeFn: *const fn (context: *anyopaque, bytes: []const u8, offset: u64) Error!void,

pub fn write(sink: Sink, bytes: []const u8, offset: u64) Error!void {
    return sink.writeFn(sink.context, bytes, offset);
}
