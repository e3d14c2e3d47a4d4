//! The files that devices can download by TFTP: names of a table, never paths. Three kinds have
//! names: boot programs in memory, kernel and initramfs of a boot's version (`b/<handle>/kernel`,
//! `b/<handle>/initrd`), and texts made for one device on request, such as its loader's
//! configuration. Allocates nothing after the start.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const text_size_max = @import("loader_texts.zig").text_size_max;
const assert = std.debug.assert;
const TftpCatalogue = core.tftp.Server.Catalogue;
const File = core.tftp.Server.File;

pub const FileQuery = core.tftp.Server.FileQuery;

/// Texts that can be in flight at once.
const texts_max = 128;

/// The phase of a boot that a download belongs to.
pub const What = enum { boot_program, configuration, kernel, initrd, start };

pub fn Catalogue(comptime Io: type) type {
    return struct {
        const Self = @This();
        const Boots = @import("boots.zig").Boots(Io);
        const LoaderTexts = @import("loader_texts.zig").LoaderTexts(Io);

        boots: *Boots,
        texts: LoaderTexts,
        /// Open files, indexed by the `source` of a transfer.
        slots: []Slot,
        text_buffers: []TextBuffer,

        const Slot = struct { content: Content = .free, what: What = .boot_program };

        const Content = union(enum) {
            free,
            memory: []const u8,
            /// Owned by the transfer.
            file: Io.File,
            text: struct { buffer: u32, size: u32, is_promise: bool },
        };

        const TextBuffer = struct { is_taken: bool = false, bytes: [text_size_max]u8 = undefined };

        /// Allocates slots for `transfers_max` transfers.
        pub fn init(
            gpa: std.mem.Allocator,
            boots: *Boots,
            own: core.dhcp.network.Addresses,
            transfers_max: usize,
        ) error{OutOfMemory}!Self {
            assert(transfers_max > 0);
            // One more is open while a peer's new request replaces its transfer.
            const slots = try gpa.alloc(Slot, transfers_max + 1);
            errdefer gpa.free(slots);
            const text_buffers =
                try base.allocZeroed(gpa, TextBuffer, .{ .is_taken = false }, texts_max);
            @memset(slots, .{});
            return .{
                .boots = boots,
                .texts = .{ .boots = boots, .own = own },
                .slots = slots,
                .text_buffers = text_buffers,
            };
        }

        pub fn deinit(catalogue: *Self, gpa: std.mem.Allocator) void {
            for (0..catalogue.slots.len) |source| catalogue.close(@intCast(source));
            gpa.free(catalogue.slots);
            base.freeZeroed(gpa, TextBuffer, catalogue.text_buffers);
            catalogue.* = undefined;
        }

        /// `catalogue` must stay where it is.
        pub fn tftpCatalogue(catalogue: *Self) TftpCatalogue {
            return .{ .context = catalogue, .open = openFor };
        }

        pub fn what(catalogue: *const Self, source: u32) What {
            return catalogue.slots[source].what;
        }

        /// Returns the bytes where they are in memory; null: use `read`.
        pub fn memory(catalogue: *const Self, source: u32) ?[]const u8 {
            return switch (catalogue.slots[source].content) {
                .free => unreachable,
                .memory => |bytes| bytes,
                .file => null,
                .text => |text| catalogue.text_buffers[text.buffer].bytes[0..text.size],
            };
        }

        /// The bytes promise what the journal was given: they are sent after that.
        pub fn isPromise(catalogue: *const Self, source: u32) bool {
            return switch (catalogue.slots[source].content) {
                .free => unreachable,
                .memory, .file => false,
                .text => |text| text.is_promise,
            };
        }

        /// The open file of content that is not in memory.
        pub fn fileOf(catalogue: *const Self, source: u32) Io.File {
            return catalogue.slots[source].content.file;
        }

        /// Fills `buffer` from `offset` of a file that is not in memory.
        pub fn read(
            catalogue: *const Self,
            source: u32,
            buffer: []u8,
            offset: u64,
        ) error{ReadFailed}!void {
            return catalogue.boots.io.readFile(
                catalogue.slots[source].content.file,
                buffer,
                offset,
            );
        }

        pub fn close(catalogue: *Self, source: u32) void {
            assert(source < catalogue.slots.len);
            const slot = &catalogue.slots[source];
            switch (slot.content) {
                .free, .memory => {},
                .file => |file| catalogue.boots.io.closeFile(file),
                .text => |text| catalogue.text_buffers[text.buffer].is_taken = false,
            }
            slot.* = .{};
            assert(catalogue.slots[source].content == .free);
        }

        fn openFor(context: *anyopaque, question: *const FileQuery) TftpCatalogue.OpenError!File {
            const catalogue: *Self = @ptrCast(@alignCast(context));
            return catalogue.open(question);
        }

        fn open(catalogue: *Self, question: *const FileQuery) TftpCatalogue.OpenError!File {
            if (question.handle) |handle| if (std.meta.stringToEnum(OwnFile, question.name)) |own|
                return catalogue.openOwnFile(handle, own);
            if (try catalogue.openText(question)) |file| return file;
            const files = catalogue.boots.io.bootFiles();
            if (files.find(question.name) == null) return error.NotFound;
            // With one set there is nothing to choose, and finding the boot of an address scans all
            // boots.
            const is_boots_own = question.handle != null or files.sets.len > 1;
            const ref = if (is_boots_own)
                catalogue.boots.forPath(question.handle, question.peer.ip)
            else
                null;
            const boot = if (ref) |known| catalogue.boots.get(known) else null;
            const bytes = files.fileFor(boot, question.name) orelse return error.NotFound;
            return catalogue.take(.{ .memory = bytes }, .boot_program, bytes.len);
        }

        /// Files that come with a boot's version.
        const OwnFile = enum { kernel, initrd, start };

        fn openOwnFile(
            catalogue: *Self,
            handle: core.boot.Handle,
            own: OwnFile,
        ) TftpCatalogue.OpenError!File {
            const boots = catalogue.boots;
            const ref = boots.table.findByHandle(handle.value) orelse return error.NotFound;
            const boot = boots.get(ref) orelse return error.NotFound;
            assert(boot.identity.handle == handle.value);
            const start_file = core.loader.start_file.bytes;
            if (own == .start)
                return catalogue.take(.{ .memory = start_file }, .start, start_file.len);
            // The device repeats its request.
            if (boots.awaitsVersion(boot)) return error.Busy;
            const version = boots.versionOf(boot) orelse return error.NotFound;
            const file = switch (own) {
                .kernel => version.kernel,
                .initrd => version.initrd,
                .start => unreachable,
            } orelse return error.NotFound;
            // The version may be closed while the transfer still reads.
            const opened = boots.io.duplicateFile(&file) catch return error.Busy;
            errdefer boots.io.closeFile(opened);
            return catalogue.take(.{ .file = opened }, switch (own) {
                .kernel => .kernel,
                .initrd => .initrd,
                .start => unreachable,
            }, file.size);
        }

        fn openText(catalogue: *Self, question: *const FileQuery) TftpCatalogue.OpenError!?File {
            for (catalogue.text_buffers, 0..) |*buffer, index| {
                if (buffer.is_taken) continue;
                const text = catalogue.texts.write(question, &buffer.bytes) orelse
                    return if (catalogue.texts.waits_for_version) error.Busy else null;
                assert(text.ptr == &buffer.bytes and text.len <= text_size_max);
                const content: Content = .{ .text = .{
                    .buffer = @intCast(index),
                    .size = @intCast(text.len),
                    .is_promise = catalogue.texts.is_promise,
                } };
                const file = try catalogue.take(content, .configuration, text.len);
                assert(!buffer.is_taken);
                buffer.is_taken = true;
                return file;
            }
            return error.Busy;
        }

        fn take(catalogue: *Self, content: Content, kind: What, size: u64) error{Busy}!File {
            assert(content != .free);
            for (catalogue.slots, 0..) |*slot, source| {
                if (slot.content != .free) continue;
                slot.* = .{ .content = content, .what = kind };
                assert(slot.content != .free);
                return .{ .size = size, .source = @intCast(source) };
            }
            return error.Busy;
        }
    };
}
