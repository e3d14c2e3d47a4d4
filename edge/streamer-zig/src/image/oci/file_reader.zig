//! A part of a file as a stream, with the digest of what was read.

const std = @import("std");
const base = @import("base");
const store = @import("store");
const Sha256 = base.Sha256;
const Reader = std.Io.Reader;
const ImageSource = store.image_source.ImageSource;

pub const FileReader = @This();

source: ImageSource,
at: u64,
end: u64,
/// Of all bytes so far; skipping seeks if there is none.
sha: ?Sha256,
interface: Reader,

/// `buffer` must hold a block of zstd if that is read from it.
pub fn init(
    source: ImageSource,
    range: struct { first: u64, size: u64 },
    sha: ?Sha256,
    buffer: []u8,
) FileReader {
    return .{
        .source = source,
        .at = range.first,
        .end = range.first + range.size,
        .sha = sha,
        .interface = .{
            .vtable = if (sha == null)
                &.{ .stream = stream, .discard = discard }
            else
                &.{ .stream = stream },
            .buffer = buffer,
            .seek = 0,
            .end = 0,
        },
    };
}

fn stream(reader: *Reader, writer: *std.Io.Writer, limit: std.Io.Limit) Reader.StreamError!usize {
    const file: *FileReader = @alignCast(@fieldParentPtr("interface", reader));
    if (file.at == file.end) return error.EndOfStream;
    const all = limit.slice(try writer.writableSliceGreedy(1));
    const wanted = all[0..@intCast(@min(all.len, file.end - file.at))];
    var failed_at: u64 = 0;
    const count = file.source.read(wanted, file.at, &failed_at) catch return error.ReadFailed;
    // The file has become shorter.
    if (count == 0) return error.ReadFailed;
    if (file.sha) |*sha| sha.update(wanted[0..count]);
    file.at += count;
    writer.advance(count);
    return count;
}

fn discard(reader: *Reader, limit: std.Io.Limit) Reader.Error!usize {
    const file: *FileReader = @alignCast(@fieldParentPtr("interface", reader));
    if (file.at == file.end) return error.EndOfStream;
    const count = limit.minInt64(file.end - file.at);
    file.at += count;
    return @intCast(count);
}
