//! What an edge has fetched of a URL, as a text beside the file: the size and the validator of the
//! content, and how many of its bytes are durable. After a restart the fetch continues there
//! (core/uplink/image_fetch.zig). Invariant: the text never counts bytes that a power cut can take.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const sys = @import("../sys.zig");
const linux = std.os.linux;
const Io = std.Io;
const Validator = core.uplink.ImageFetch.Validator;

pub const KeptFetch = @This();

size: u64,
durable: u64,
validator: Validator,

pub const suffix = ".kept";
const text_size_max = 256;
const path_size_max = core.uplink.store_job.Arguments.store_path_size_max + 128;
/// What is fetched again after a power cut, at most, and how often the disk is synced for it.
pub const interval_bytes = 16 << 20;

/// Null: nothing is known of the file, or what is said of it cannot be read.
pub fn read(io: Io, folder: []const u8, id: base.Uuid) ?KeptFetch {
    var path_buffer: [path_size_max]u8 = undefined;
    const path = std.mem.print(&path_buffer, "{s}/{f}" ++ suffix, .{ folder, id }) catch
        return null;
    var buffer: [text_size_max]u8 = undefined;
    return parse(Io.Dir.cwd().readFile(io, path, &buffer) catch return null);
}

fn parse(text: []const u8) ?KeptFetch {
    var lines = std.mem.splitScalar(u8, text, '\n');
    const size = std.fmt.parseInt(u64, lines.next() orelse return null, 10) catch return null;
    const durable = std.fmt.parseInt(u64, lines.next() orelse return null, 10) catch return null;
    const validator = Validator.fromSlice(lines.next() orelse return null) catch return null;
    // A text that was cut has no last line.
    const end = lines.next() orelse return null;
    if (end.len > 0 or lines.next() != null) return null;
    for (validator.constSlice()) |byte| if (!std.ascii.isPrint(byte)) return null;
    if (validator.count == 0 or durable > size) return null;
    return .{ .size = size, .durable = durable, .validator = validator };
}

/// `fd` has the bytes. The text is replaced as a whole.
pub fn write(
    kept: *const KeptFetch,
    io: Io,
    folder: []const u8,
    id: base.Uuid,
    fd: i32,
) !void {
    _ = try sys.check(linux.fdatasync(fd));
    var text_buffer: [text_size_max]u8 = undefined;
    const text = try std.mem.print(&text_buffer, "{d}\n{d}\n{s}\n", .{
        kept.size, kept.durable, kept.validator.constSlice(),
    });
    var path_buffers: [2][path_size_max]u8 = undefined;
    const path = try std.mem.print(&path_buffers[0], "{s}/{f}" ++ suffix, .{ folder, id });
    const part = try std.mem.print(&path_buffers[1], "{s}/{f}" ++ suffix ++ ".part", .{
        folder, id,
    });
    const cwd = Io.Dir.cwd();
    try cwd.writeFile(io, .{ .sub_path = part, .data = text });
    try cwd.rename(part, cwd, path, io);
}

pub fn remove(io: Io, folder: []const u8, id: base.Uuid) void {
    var path_buffer: [path_size_max]u8 = undefined;
    const path = std.mem.print(&path_buffer, "{s}/{f}" ++ suffix, .{ folder, id }) catch return;
    Io.Dir.cwd().deleteFile(io, path) catch {};
}

/// Returns the fetch that a file of the folder belongs to.
pub fn idOf(name: []const u8) ?base.Uuid {
    const bare = std.mem.cutSuffix(u8, name, ".part") orelse name;
    return base.Uuid.parse(std.mem.cutSuffix(u8, bare, suffix) orelse bare) catch null;
}

const testing = std.testing;

test "what was written is read again, and is gone when it was removed" {
    const io = testing.io;
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    var path_buffer: [std.fs.max_path_bytes]u8 = undefined;
    const folder = path_buffer[0..try tmp.dir.realPath(io, &path_buffer)];
    const id: base.Uuid = .fromRandom(@splat(7));
    const file = try tmp.dir.createFile(io, "image", .{});
    defer file.close(io);
    try testing.expectEqual(null, read(io, folder, id));
    const kept: KeptFetch = .{
        .size = 300,
        .durable = 100,
        .validator = try Validator.fromSlice("\"a b\""),
    };
    try kept.write(io, folder, id, file.handle);
    const found = read(io, folder, id).?;
    try testing.expectEqual([2]u64{ 300, 100 }, [2]u64{ found.size, found.durable });
    try testing.expectEqualStrings("\"a b\"", found.validator.constSlice());
    remove(io, folder, id);
    try testing.expectEqual(null, read(io, folder, id));
}

test "a text that is cut or changed is not believed" {
    try testing.expect(parse("300\n100\n\"a\"\n") != null);
    for ([_][]const u8{
        "",                     "300",              "300\n100\n",
        "300\n100\n\"a\"",      "300\n100\n\n",     "300\n301\n\"a\"\n",
        "x\n100\n\"a\"\n",      "300\n-1\n\"a\"\n", "300\n100\n\"a\"\nmore",
        "300\n100\n\"\x01\"\n",
    }) |text| try testing.expectEqual(null, parse(text));
}

test "files of a fetch are known by its id" {
    const id: base.Uuid = .fromRandom(@splat(7));
    var buffer: [128]u8 = undefined;
    for ([_][]const u8{ "", ".kept", ".kept.part" }) |end| {
        const name = try std.mem.print(&buffer, "{f}{s}", .{ id, end });
        try testing.expect(idOf(name).?.eql(id));
    }
    try testing.expectEqual(null, idOf("debian.kept"));
}
