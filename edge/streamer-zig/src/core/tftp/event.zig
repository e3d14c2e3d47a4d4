//! A step of the TFTP server: the packets to send, and what happened to which transfer. Consumer:
//! the host's TFTP port.

const std = @import("std");
const assert = std.debug.assert;
const base = @import("base");
const tftp = @import("wire").tftp;
const BootHandle = @import("../boot/handle.zig");
const Endpoint = base.Endpoint;

/// Knows the published files by name. A name is looked up, never opened as a path.
pub const Catalogue = struct {
    context: *anyopaque,
    /// The returned file keeps its size and bytes until its source comes back in a step's
    /// `released`.
    open: *const fn (context: *anyopaque, query: *const FileQuery) OpenError!File,

    /// `NotFound`: nothing of this name is published for this peer. `Busy`: it is, but capacity is
    /// used up; the peer gets no answer and retransmits.
    pub const OpenError = error{ NotFound, Busy };

    /// The same as `files[i].name`, for tables that never change; `source` is the index.
    pub const Fixed = struct {
        files: []const Entry,

        pub const Entry = struct { name: []const u8, size: u64 };

        pub fn catalogue(fixed: *const Fixed) Catalogue {
            return .{ .context = @constCast(fixed), .open = find };
        }

        fn find(context: *anyopaque, query: *const FileQuery) OpenError!File {
            const fixed: *const Fixed = @ptrCast(@alignCast(context));
            for (fixed.files, 0..) |*file, index| {
                if (!std.mem.eql(u8, file.name, query.name)) continue;
                return .{ .size = file.size, .source = @intCast(index) };
            }
            return error.NotFound;
        }
    };
};

/// What a request names: the file without leading slashes and without the boot's handle.
pub const FileQuery = struct {
    name: []const u8,
    handle: ?BootHandle,
    peer: Endpoint,
    /// The peer has answered the first packet, so the address is its own; until then an attacker
    /// may have sent the request, and it must have no effect. Both get the same answer.
    is_confirmed: bool,
};

/// The file behind a name, for as long as a transfer needs it.
pub const File = struct {
    size: u64,
    /// The catalogue's own number for it.
    source: u32,
};

/// Fields common to all events of a transfer.
pub const Transfer = struct {
    peer: Endpoint,
    /// From the path `b/<handle>/<name>`; null for a bare name.
    handle: ?BootHandle,
    file: File,
    /// The transfer's own slot from `started` to its end, less than `sessions_max`; before,
    /// `no_slot`.
    slot: u16 = no_slot,

    pub const no_slot = std.math.maxInt(u16);
};

pub const Refusal = enum { not_found, not_octet };

pub const Failure = union(enum) {
    /// The peer ended it. The text is the peer's own.
    peer_error: struct { code: tftp.ErrorCode, text: base.UntrustedText },
    /// It stopped acknowledging.
    timeout,
    /// The same peer requested a file again.
    superseded,
    /// It has acknowledged nothing for long and its slot was needed.
    evicted,
    /// The file could not be read, or has changed.
    aborted,
};

pub const Event = union(enum) {
    /// A read request was answered by its first packet. No transfer exists yet.
    requested: Transfer,
    /// Its peer has acknowledged that packet; from now on it has a slot (`TftpServer.slotOf`).
    started: Transfer,
    /// The peer wanted only the size, as OVMF does: OACK, then ERROR 8. Another request follows.
    size_queried: struct { peer: Endpoint, handle: ?BootHandle },
    /// It was requested, and no transfer followed.
    unanswered: struct { peer: Endpoint, handle: ?BootHandle, why: Failure },
    finished: struct {
        transfer: Transfer,
        bytes: u64,
        /// Blocks that were sent more than once.
        retries: u64,
        /// False: everything but the last block was acknowledged, then the peer fell silent, like
        /// ROMs that start the program at once.
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

/// DATA packets to send: `count` blocks from number `first` (1-based, not truncated to 16 bits).
pub const Blocks = struct {
    to: Endpoint,
    /// The transfer's slot.
    slot: u16 = Transfer.no_slot,
    source: u32,
    file_size: u64,
    blksize: u16,
    first: u64,
    count: u16,

    /// Size of all packets with their headers.
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
            assert(iterator.index <= iterator.blocks.count);
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

/// One DATA packet: the header, then `size` bytes of the file; 0 at the end of a file whose size is
/// a multiple of the block size.
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
    /// Sources to release once the step's packets are sent.
    released: base.BoundedArray(u32, 3) = .empty,
};
