//! Writes a disk as a file of another format than raw, in one pass and with little memory: tables
//! are written as the disk's bytes come, and the header last. The same version gives the same file.

const std = @import("std");
const base = @import("base");
const store = @import("store");
const Qcow2Writer = @import("qcow2_writer.zig");
const VhdxWriter = @import("vhdx_writer.zig");
const Layout = store.@"export".Layout;

pub const Format = enum { raw, qcow2, vhdx };

/// `TooLarge`: the format has no disk of this size.
pub const InitError = error{ TooLarge, OutOfMemory };

/// Must not move once its layout is in use.
pub const Writer = union(enum) {
    qcow2: Qcow2Writer,
    vhdx: VhdxWriter,

    /// Null for raw.
    ///
    /// @param fd an empty file
    /// @param id of the version: identifies the state of the data, where a format has that
    pub fn init(
        gpa: std.mem.Allocator,
        format: Format,
        fd: i32,
        disk_size: u64,
        id: base.Uuid,
    ) InitError!?Writer {
        return switch (format) {
            .raw => null,
            .qcow2 => .{ .qcow2 = try .init(gpa, fd, disk_size) },
            .vhdx => .{ .vhdx = try .init(fd, disk_size, id) },
        };
    }

    pub fn deinit(writer: *Writer, gpa: std.mem.Allocator) void {
        switch (writer.*) {
            .qcow2 => |*qcow2| qcow2.deinit(gpa),
            .vhdx => {},
        }
    }

    pub fn layout(writer: *Writer) Layout {
        return switch (writer.*) {
            .qcow2 => |*qcow2| qcow2.layout(),
            .vhdx => |*vhdx| vhdx.layout(),
        };
    }
};

test {
    _ = @import("writer_test.zig");
}
