//! The program that measures the stream against NBD servers (`npm run bench -- stream`). One client
//! for all: the same loop, the same reads, the same checks. `load` and `replay` print one JSON
//! object.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const linux = std.os.linux;
const sys = @import("host").sys;
const load = @import("load.zig");
const pattern = @import("pattern.zig");
const relay = @import("relay.zig");
const replay = @import("replay.zig");

const usage =
    \\usage: stream-bench image --file FILE --mib N
    \\           writes a disk of known bytes, and keeps it in the page cache until the program is ended
    \\       stream-bench load --way stream|nbd --server IP:PORT [options]
    \\           devices that read at random
    \\       stream-bench replay --way stream|nbd --server IP:PORT --trace FILE [options]
    \\           the reads of a recorded boot, without its think times
    \\       stream-bench relay --server-namespace NAME --client-namespace NAME --delay-us N --loss N
    \\           a link between two network namespaces, N us and N of 100,000 packets lost in each direction
    \\
    \\Options are the fields of `Options` in src/bench/stream/load.zig, replay.zig and relay.zig.
    \\
;

const Image = struct { file: []const u8 = "", mib: u32 = 1024 };
const Command = enum { image, load, replay, relay };
const trace_size_max = 8 << 20;

pub fn main(init: std.process.Init) !u8 {
    const arguments = try init.minimal.args.toSlice(init.arena.allocator());
    var buffer: [4096]u8 = undefined;
    var out: std.Io.File.Writer = .initStreaming(.stdout(), init.io, &buffer);
    if (arguments.len < 2) return usageError();
    const rest = arguments[2..];
    const gpa = std.heap.smp_allocator;
    switch (std.meta.stringToEnum(Command, arguments[1]) orelse return usageError()) {
        .image => {
            var image: Image = .{};
            if (!parse(Image, rest, &image) or image.file.len == 0) return usageError();
            relay.endWithParent();
            try writeImage(init.io, gpa, &image);
            try holdImage(&image);
            try out.interface.writeAll("held\n");
            try out.interface.flush();
            while (true) _ = linux.pause();
        },
        .load => {
            var options: load.Options = .{ .way = .stream, .server = nowhere };
            if (!parse(load.Options, rest, &options) or options.server.port == 0)
                return usageError();
            if (options.devices == 0 or options.depth == 0 or
                options.depth > 64) return usageError();
            return print(load.run(gpa, &options), &out.interface);
        },
        .replay => {
            var options: replay.Options = .{ .way = .stream, .server = nowhere };
            if (!parse(replay.Options, rest, &options) or options.server.port == 0)
                return usageError();
            if (options.depth == 0 or options.depth > 64 or options.piece == 0) return usageError();
            const text = try std.Io.Dir.cwd().readFileAlloc(
                init.io,
                options.trace,
                gpa,
                .limited(trace_size_max),
            );
            defer gpa.free(text);
            var line: u32 = 0;
            const reads = try core.device.read_trace.parse(gpa, text, &line);
            defer gpa.free(reads);
            return print(replay.run(gpa, &options, reads), &out.interface);
        },
        .relay => {
            var options: relay.Options = .{ .server_namespace = "", .client_namespace = "" };
            if (!parse(relay.Options, rest, &options) or options.client_namespace.len == 0)
                return usageError();
            try relay.run(gpa, &options, &out.interface);
            return 0;
        },
    }
}

const nowhere: base.Endpoint = .{ .ip = .zero, .port = 0 };

fn print(result: anytype, out: *std.Io.Writer) !u8 {
    const found = result catch |err| {
        std.debug.print("stream-bench: {t}\n", .{err});
        return 1;
    };
    try out.print("{f}\n", .{std.json.fmt(found, .{})});
    try out.flush();
    return 0;
}

fn usageError() u8 {
    std.debug.print(usage, .{});
    return 2;
}

/// `--disk-mib 64` sets `disk_mib`.
fn parse(comptime Options: type, arguments: []const [:0]const u8, options: *Options) bool {
    if (arguments.len % 2 != 0) return false;
    var index: usize = 0;
    while (index < arguments.len) : (index += 2) {
        const bare = std.mem.cutPrefix(u8, arguments[index], "--") orelse return false;
        var is_known = false;
        inline for (@typeInfo(Options).@"struct".field_names) |name| {
            if (std.mem.eql(u8, bare, comptime optionOf(name))) {
                const value = valueOf(@FieldType(Options, name), arguments[index + 1]) orelse
                    return false;
                @field(options, name) = value;
                is_known = true;
            }
        }
        if (!is_known) return false;
    }
    return true;
}

fn optionOf(comptime name: []const u8) []const u8 {
    var option: [name.len]u8 = undefined;
    for (&option, name) |*to, from| to.* = if (from == '_') '-' else from;
    const final = option;
    return &final;
}

fn valueOf(comptime T: type, text: []const u8) ?T {
    return switch (@typeInfo(T)) {
        .int => std.fmt.parseInt(T, text, 10) catch null,
        .@"enum" => std.meta.stringToEnum(T, text),
        .pointer => text,
        else => T.parse(text) catch null,
    };
}

/// Synced at the end: no write-back happens while servers are measured.
fn writeImage(io: std.Io, gpa: std.mem.Allocator, image: *const Image) !void {
    const file = try std.Io.Dir.cwd().createFile(io, image.file, .{});
    defer file.close(io);
    const piece = try gpa.alloc(u8, 1 << 20);
    defer gpa.free(piece);
    for (0..image.mib) |index| {
        pattern.fill(piece, index << 20);
        try file.writePositionalAll(io, piece, index << 20);
    }
    try file.sync(io);
}

/// Locks the pages: neither other programs nor a dropped page cache can evict them.
fn holdImage(image: *const Image) !void {
    const path = try std.posix.toPosixPath(image.file);
    const fd: i32 = @intCast(try sys.check(linux.open(&path, .{ .CLOEXEC = true }, 0)));
    const bytes = try std.posix.mmap(
        null,
        @as(usize, image.mib) << 20,
        .{ .READ = true },
        .{ .TYPE = .SHARED },
        fd,
        0,
    );
    _ = try sys.check(linux.mlock(bytes.ptr, bytes.len));
}
