//! The part of a difference that a killed `vdisk pack` has left, and from where the next run
//! continues. Each frame is compared with its digest: after a power cut or a fault of the disk, the
//! frames before it count, and no others.

const std = @import("std");
const format = @import("format.zig");
const image_source = @import("../import/image_source.zig");
const assert = std.debug.assert;

const FrameHead = format.FrameHead;
const ImageSource = image_source.ImageSource;

pub const PackedPart = @This();

/// Of the file, up to the end of a frame.
size: u64,
/// The block of the disk behind the last one in these frames.
blocks_end: u64,
/// Blocks with data in these frames.
data_blocks: u64,

/// Returns null if the file belongs to another difference, or has no frame of blocks: kernel and
/// initramfs are packed again.
pub fn find(
    file: *const ImageSource,
    header: *const format.Header,
    buffer: *[format.raw_size_max]u8,
) ?PackedPart {
    assert(file.is_positional);
    var there: [format.header_size]u8 = undefined;
    if (!isRead(file, &there, 0)) return null;
    if (!std.mem.eql(u8, &there, &header.encode())) return null;
    var part: PackedPart = .{ .size = there.len, .blocks_end = 0, .data_blocks = 0 };
    // A file has a limited number of frames: each has a head, and at least a byte behind it.
    while (true) {
        var head_bytes: [format.frame_head_size]u8 = undefined;
        if (!isRead(file, &head_bytes, part.size)) break;
        const head = FrameHead.decode(&head_bytes) catch break;
        // The end is written again: it has no bytes.
        if (head.kind == .end) break;
        const packed_bytes = buffer[0..head.packed_size];
        if (!isRead(file, packed_bytes, part.size + head_bytes.len)) break;
        if (!head.isIntact(&head_bytes, packed_bytes)) break;
        if (head.kind == .blocks) {
            if (head.first < part.blocks_end or head.end > header.blockCount()) break;
            part.blocks_end = head.end;
            part.data_blocks += head.dataBlocks();
        }
        part.size += head_bytes.len + packed_bytes.len;
    }
    return if (part.blocks_end > 0) part else null;
}

fn isRead(file: *const ImageSource, buffer: []u8, offset: u64) bool {
    var failed_at: u64 = 0;
    return (file.read(buffer, offset, &failed_at) catch 0) == buffer.len;
}
