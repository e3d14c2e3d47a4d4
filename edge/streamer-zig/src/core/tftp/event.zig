//! What a step of the TFTP server says: what is to be sent, and what has happened to which
//! transfer.

const std = @import("std");
const assert = std.debug.assert;
const base = @import("base");
const tftp = @import("wire").tftp;
const BootHandle = @import("../boot/handle.zig").BootHandle;
const Endpoint = base.Endpoint;

/// Who knows what is published, by name. A name is looked up, never opened as a path.
pub const Catalogue = struct {
    context: *anyopaque,
    /// What it gives keeps its size and its bytes until it comes back in a step's `released`.
    open: *const fn (context: *anyopaque, question: *const Question) OpenError!File,

    /// `not_found`: nothing of this name is published for this peer. `busy`: it is, and there is no
    /// room for it now; the peer is not answered and asks again.
    pub const OpenError = error{ NotFound, Busy };

    /// The same as `files[i].name`, for tables that never change; `source` is the index.
    pub const Fixed = struct {
        files: []const Named,

        pub const Named = struct { name: []const u8, size: u64 };

        pub fn catalogue(fixed: *const Fixed) Catalogue {
            return .{ .context = @constCast(fixed), .open = find };
        }

        fn find(context: *anyopaque, question: *const Question) OpenError!File {
            const fixed: *const Fixed = @ptrCast(@alignCast(context));
            for (fixed.files, 0..) |*file, index| {
                if (!std.mem.eql(u8, file.name, question.name)) continue;
                return .{ .size = file.size, .source = @intCast(index) };
            }
            return error.NotFound;
        }
    };
};

/// What a request asks for: the name without leading slashes and without the boot's handle.
pub const Question = struct {
    name: []const u8,
    handle: ?BootHandle,
    peer: Endpoint,
    /// The peer has answered the first packet, so the address is its own; before, the question may
    /// be anybody's, and nothing must follow from it. Both get the same answer.
    is_confirmed: bool,
};

/// What a name stands for, as long as a transfer needs it.
pub const File = struct {
    size: u64,
    /// The catalogue's own number for it.
    source: u32,
};

/// What all events of a transfer carry.
pub const Transfer = struct {
    peer: Endpoint,
    /// From the path `b/<handle>/<name>`; null for a bare name.
    handle: ?BootHandle,
    file: File,
    /// The transfer's own from `began` to its end, less than `sessions_max`; before, `no_place`.
    place: u16 = no_place,

    pub const no_place = std.math.maxInt(u16);
};

pub const Refusal = enum { not_found, not_octet };

pub const Failure = union(enum) {
    /// The peer ended it. The text is the peer's own.
    peer_error: struct { code: tftp.ErrorCode, text: base.UntrustedText },
    /// It stopped acknowledging.
    timeout,
    /// The same peer asked for a file again.
    superseded,
    /// It has long acknowledged nothing and its place was needed.
    evicted,
    /// The file could not be read, or has changed.
    aborted,
};

pub const Event = union(enum) {
    /// A read request was answered by its first packet. The transfer is not one yet.
    asked: Transfer,
    /// Its peer has acknowledged that; from here on it has a place (`TftpServer.placeOf`).
    began: Transfer,
    /// The peer wanted only the size, as OVMF does: OACK, then ERROR 8. It asks again.
    size_asked: struct { peer: Endpoint, handle: ?BootHandle },
    /// It was asked for, and no transfer came of it.
    unanswered: struct { peer: Endpoint, handle: ?BootHandle, why: Failure },
    finished: struct {
        transfer: Transfer,
        bytes: u64,
        /// Blocks that were sent more than once.
        retries: u64,
        /// False: everything but the last block was acknowledged, then the peer was gone. ROMs that
        /// start the program at once do so.
        last_ack_seen: bool,
    },
    failed: struct { transfer: Transfer, bytes: u64, retries: u64, why: Failure },
    refused: struct {
        peer: Endpoint,
        handle: ?BootHandle,
        name: base.UntrustedText,
        why: Refusal,
    },
};

/// DATA packets to send: `count` blocks from number `first` (1-based, not yet cut to 16 bits).
pub const Blocks = struct {
    to: Endpoint,
    /// Of the transfer.
    place: u16 = Transfer.no_place,
    source: u32,
    file_size: u64,
    blksize: u16,
    first: u64,
    count: u16,

    /// Of all packets, with their headers.
    pub fn byteCount(blocks: *const Blocks) u64 {
        const offset = (blocks.first - 1) * blocks.blksize;
        const size = @min(@as(u64, blocks.count) * blocks.blksize, blocks.file_size - offset);
        return size + @as(u64, blocks.count) * tftp.data_header_size;
    }

    pub fn iterate(blocks: Blocks) Iterator {
        return .{ .blocks = blocks };
    }

    pub const Iterator = struct {
        blocks: Blocks,
        index: u16 = 0,

        pub fn next(iterator: *Iterator) ?Block {
            const blocks = &iterator.blocks;
            if (iterator.index == blocks.count) return null;
            const number = blocks.first + iterator.index;
            iterator.index += 1;
            const offset = (number - 1) * blocks.blksize;
            assert(offset <= blocks.file_size);
            return .{
                .header = tftp.dataHeader(@truncate(number)),
                .offset = offset,
                .size = @intCast(@min(blocks.blksize, blocks.file_size - offset)),
            };
        }
    };
};

/// One DATA packet: the header, then `size` bytes of the file; 0 for the end of a file whose size
/// is a multiple of the block's.
pub const Block = struct { header: [tftp.data_header_size]u8, offset: u64, size: u16 };

pub const Packet = struct { to: Endpoint, bytes: []const u8 };

pub const Send = union(enum) {
    nothing,
    /// Points into the reply buffer.
    packet: Packet,
    blocks: Blocks,
};

pub const Step = struct {
    /// Set when the datagram was ignored or refused; counted already.
    ignored: ?base.IgnoreReason = null,
    send: Send = .nothing,
    events: base.BoundedArray(Event, 4) = .empty,
    /// Sources that are needed no longer, once the step's packets are out.
    released: base.BoundedArray(u32, 3) = .empty,
};
