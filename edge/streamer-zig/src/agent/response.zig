//! An answer over HTTP: status, body, and the boot that it belongs to. Made by `http_paths.zig`,
//! sent by the HTTP server of `Io`, which reports progress with the answer's tag.

const std = @import("std");
const base = @import("base");
const core = @import("core");

pub const text_size_max = 4096;
pub const Body = union(enum) {
    none,
    /// Written into the connection's own buffer by the handler; length in bytes.
    text: usize,
    memory: []const u8,
    file: struct { fd: i32, size: u64 },
    /// Read through the handler's `read`, as long as the version is open.
    disk: struct { version_id: base.Uuid, size: u64 },

    /// `file` has `fd` and `size`.
    pub fn ofFile(file: anytype) Body {
        return .{ .file = .{ .fd = file.fd, .size = file.size } };
    }

    pub fn size(body: Body) u64 {
        return switch (body) {
            .none => 0,
            .text => |length| length,
            .memory => |bytes| bytes.len,
            .file => |file| file.size,
            .disk => |disk| disk.size,
        };
    }
};

/// The boot and file that an answer belongs to; returned with its progress.
pub const Tag = struct {
    boot: ?core.boot.Table.Ref = null,
    what: What = .other,
    /// Of the boot's transfers.
    file: u8 = core.boot.Transfers.none,

    pub const What = enum { other, nbp, script, kernel, initrd, disk, start };

    /// Its end begins or ends a phase of the boot.
    pub fn isMeasured(tag: Tag) bool {
        return tag.boot != null and switch (tag.what) {
            .nbp, .script, .kernel, .initrd, .start => true,
            .other, .disk => false,
        };
    }
};

pub const Response = struct {
    status: u16,
    content_type: []const u8 = "application/octet-stream",
    body: Body = .none,
    tag: Tag = .{},
    /// It promises what the journal was given: it is sent after that.
    after_journal: bool = false,
    /// The methods that the path accepts, with 405.
    allow: []const u8 = "GET, HEAD, POST",

    /// A version is being opened: the request is to be answered once one has been.
    waits_for_version: bool = false,

    pub const later: Response = .{ .status = 503, .waits_for_version = true };

    /// Answers with one line of text.
    pub fn saying(status: u16, sentence: []const u8, text: *[text_size_max]u8) Response {
        const line = std.mem.print(text, "{s}\n", .{sentence}) catch unreachable;
        return .{ .status = status, .content_type = "text/plain", .body = .{ .text = line.len } };
    }
};

pub const Progress = struct {
    traffic: core.boot.phase.Traffic,
    /// The first progress of this answer.
    begins: bool = false,
    /// The client acknowledged the last byte, or was sent all of it and went on without a word or
    /// with a reset; of a disk: the last byte was handed to the network.
    finished: bool = false,
    /// µs of the monotonic clock; with `begins` when the request arrived, with `finished` when the
    /// acknowledgement did.
    at_us: u64 = 0,
    /// Bytes of the body that this answer has in all, after its range.
    body_size: u64 = 0,
};
