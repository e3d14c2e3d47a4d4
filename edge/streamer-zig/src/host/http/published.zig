//! The objects that devices can request by TFTP: names in a table, never paths. Three kinds have
//! names: boot programs in memory, kernel and initramfs of a boot's version (`b/<handle>/kernel`,
//! `b/<handle>/initrd`), and texts made for one device on request, such as its loader's
//! configuration. It allocates nothing after its start.

const std = @import("std");
const core = @import("core");
const sys = @import("../sys.zig");
const Boots = @import("../boots/boots.zig").Boots;
const BootFiles = @import("../files/boot_files.zig").BootFiles;
const assert = std.debug.assert;
const linux = std.os.linux;

const Catalogue = core.tftp.Server.Catalogue;
const File = core.tftp.Server.File;

pub const FileQuery = core.tftp.Server.FileQuery;

pub const Published = struct {
    boots: *Boots,
    files: *const BootFiles,
    /// Null: no texts are made.
    texts: ?TextMaker = null,
    /// The objects that transfers hold, by their `source`.
    slots: []Slot,
    text_buffers: []TextBuffer,

    pub const text_size_max = 8192;
    /// Texts that can be in transfer at once.
    const texts_max = 128;

    /// The phase of a boot that a download belongs to.
    pub const What = enum { boot_program, configuration, kernel, initrd };

    const Slot = struct { content: Content = .free, what: What = .boot_program };

    const Content = union(enum) {
        free,
        memory: []const u8,
        /// The transfer's own descriptor.
        file: i32,
        text: struct { buffer: u32, size: u32 },
    };

    const TextBuffer = struct { is_taken: bool = false, bytes: [text_size_max]u8 = undefined };

    /// Reserves slots for `transfers_max` transfers.
    pub fn init(
        gpa: std.mem.Allocator,
        boots: *Boots,
        files: *const BootFiles,
        transfers_max: usize,
    ) error{OutOfMemory}!Published {
        // One more is open while a client's new request replaces its transfer.
        const slots = try gpa.alloc(Slot, transfers_max + 1);
        errdefer gpa.free(slots);
        const text_buffers = try gpa.alloc(TextBuffer, texts_max);
        @memset(slots, .{});
        for (text_buffers) |*buffer| buffer.is_taken = false;
        return .{ .boots = boots, .files = files, .slots = slots, .text_buffers = text_buffers };
    }

    pub fn deinit(published: *Published, gpa: std.mem.Allocator) void {
        for (0..published.slots.len) |source| published.close(@intCast(source));
        gpa.free(published.slots);
        gpa.free(published.text_buffers);
        published.* = undefined;
    }

    /// `published` must not move.
    pub fn catalogue(published: *Published) Catalogue {
        return .{ .context = published, .open = openFor };
    }

    pub fn what(published: *const Published, source: u32) What {
        return published.slots[source].what;
    }

    /// Returns the bytes if they are in memory.
    pub fn memory(published: *const Published, source: u32) ?[]const u8 {
        return switch (published.slots[source].content) {
            .free => unreachable,
            .memory => |bytes| bytes,
            .file => null,
            .text => |text| published.text_buffers[text.buffer].bytes[0..text.size],
        };
    }

    /// Fills `buffer` from `offset` of a file that is not in memory.
    pub fn read(
        published: *const Published,
        source: u32,
        buffer: []u8,
        offset: u64,
    ) error{ReadFailed}!void {
        const count = sys.readAt(published.slots[source].content.file, buffer, offset) catch
            return error.ReadFailed;
        if (count < buffer.len) return error.ReadFailed;
    }

    pub fn close(published: *Published, source: u32) void {
        const slot = &published.slots[source];
        switch (slot.content) {
            .free, .memory => {},
            .file => |fd| sys.close(fd),
            .text => |text| published.text_buffers[text.buffer].is_taken = false,
        }
        slot.* = .{};
    }

    fn openFor(context: *anyopaque, question: *const FileQuery) Catalogue.OpenError!File {
        const published: *Published = @ptrCast(@alignCast(context));
        return published.open(question);
    }

    fn open(published: *Published, question: *const FileQuery) Catalogue.OpenError!File {
        if (question.handle) |handle| if (std.meta.stringToEnum(OwnFile, question.name)) |own|
            return published.openOwnFile(handle, own);
        if (try published.openText(question)) |file| return file;
        const files = published.files;
        if (files.find(question.name) == null) return error.NotFound;
        // A single set belongs to every boot; finding the boot of an address is expensive.
        const is_boots_own = question.handle != null or files.sets.len > 1;
        const ref = if (is_boots_own)
            published.boots.forPath(question.handle, question.peer.ip)
        else
            null;
        const boot = if (ref) |known| published.boots.get(known) else null;
        const bytes = files.fileFor(boot, question.name) orelse return error.NotFound;
        return published.take(.{ .memory = bytes }, .boot_program, bytes.len);
    }

    /// The boot files of a boot's version.
    const OwnFile = enum { kernel, initrd };

    fn openOwnFile(
        published: *Published,
        handle: core.boot.Handle,
        own: OwnFile,
    ) Catalogue.OpenError!File {
        const boots = published.boots;
        const ref = boots.table.findByHandle(handle.value) orelse return error.NotFound;
        const boot = boots.get(ref) orelse return error.NotFound;
        const version = boots.versionOf(boot) orelse return error.NotFound;
        const file = switch (own) {
            .kernel => version.kernel,
            .initrd => version.initrd,
        } orelse return error.NotFound;
        // The version may be closed while the transfer still reads.
        const rc = linux.fcntl(file.fd, linux.F.DUPFD_CLOEXEC, 0);
        const fd: i32 = @intCast(sys.check(rc) catch return error.Busy);
        errdefer sys.close(fd);
        return published.take(.{ .file = fd }, switch (own) {
            .kernel => .kernel,
            .initrd => .initrd,
        }, file.size);
    }

    fn openText(published: *Published, question: *const FileQuery) Catalogue.OpenError!?File {
        const maker = published.texts orelse return null;
        for (published.text_buffers, 0..) |*buffer, index| {
            if (buffer.is_taken) continue;
            const text = maker.write(maker.context, question, &buffer.bytes) orelse return null;
            assert(text.ptr == &buffer.bytes and text.len <= text_size_max);
            const content: Content = .{ .text = .{
                .buffer = @intCast(index),
                .size = @intCast(text.len),
            } };
            const file = try published.take(content, .configuration, text.len);
            buffer.is_taken = true;
            return file;
        }
        return error.Busy;
    }

    fn take(
        published: *Published,
        content: Content,
        kind: What,
        size: u64,
    ) error{Busy}!File {
        for (published.slots, 0..) |*slot, source| {
            if (slot.content != .free) continue;
            slot.* = .{ .content = content, .what = kind };
            return .{ .size = size, .source = @intCast(source) };
        }
        return error.Busy;
    }
};

/// Makes the texts for one device: its loader's configuration, by the requested name.
pub const TextMaker = struct {
    context: *anyopaque,
    /// Writes the text to the start of `buffer` and returns it; null: it makes no text of this name
    /// for this client. It is called for packets from anybody, so it must refuse quickly, and must
    /// not take the request as a sign that a boot is in progress.
    write: *const fn (
        context: *anyopaque,
        question: *const FileQuery,
        buffer: *[Published.text_size_max]u8,
    ) ?[]const u8,
};
