//! Container images for tests and the fuzzer, made in memory: tar archives, and around them the
//! lists of `docker save` or of an OCI layout.

const std = @import("std");
const base = @import("base");
const Sha256 = base.Sha256;

pub const size_max = 256 << 10;

/// A tar archive that grows in a buffer; what does not fit stops the test.
pub const TarBuilder = struct {
    bytes: []u8,
    size: usize = 0,

    pub const Options = struct {
        kind: u8 = '0',
        mode: u32 = 0o644,
        target: []const u8 = "",
        content: []const u8 = "",
        /// As the header says it; null: that of the content.
        size: ?u64 = null,
        uid: u32 = 0,
        time: u64 = 1_700_000_000,
        major: u32 = 0,
        minor: u32 = 0,
    };

    pub fn add(tar: *TarBuilder, path: []const u8, options: Options) void {
        const header = tar.bytes[tar.size..][0..512];
        @memset(header, 0);
        @memcpy(header[0..path.len], path);
        octal(header[100..108], options.mode);
        octal(header[108..116], options.uid);
        octal(header[116..124], options.uid);
        octal(header[124..136], options.size orelse options.content.len);
        octal(header[136..148], options.time);
        header[156] = options.kind;
        @memcpy(header[157..][0..options.target.len], options.target);
        header[257..265].* = "ustar\x0000".*;
        octal(header[329..337], options.major);
        octal(header[337..345], options.minor);
        seal(header);
        tar.size += 512;
        tar.append(options.content);
    }

    /// Adds content, up to a whole record.
    pub fn append(tar: *TarBuilder, content: []const u8) void {
        @memcpy(tar.bytes[tar.size..][0..content.len], content);
        const end = std.mem.alignForward(usize, tar.size + content.len, 512);
        @memset(tar.bytes[tar.size + content.len .. end], 0);
        tar.size = end;
    }

    /// Adds an extended header for the next entry.
    pub fn pax(tar: *TarBuilder, records: []const [2][]const u8) void {
        var text: [4096]u8 = undefined;
        var writer: std.Io.Writer = .fixed(&text);
        for (records) |record| {
            const rest = record[0].len + record[1].len + 3;
            var size = rest + 1;
            while (rest + std.fmt.count("{d}", .{size}) != size) size += 1;
            writer.print("{d} {s}={s}\n", .{ size, record[0], record[1] }) catch unreachable;
        }
        tar.add("PaxHeaders/x", .{ .kind = 'x', .content = writer.buffered() });
    }

    pub fn finish(tar: *TarBuilder) []u8 {
        @memset(tar.bytes[tar.size..][0..1024], 0);
        tar.size += 1024;
        return tar.bytes[0..tar.size];
    }

    /// Corrects the checksum of a header.
    pub fn seal(header: *[512]u8) void {
        @memset(header[148..156], ' ');
        var sum: u32 = 0;
        for (header) |byte| sum += byte;
        octal(header[148..156], sum);
    }

    fn octal(field: []u8, number: u64) void {
        var rest = number;
        var at = field.len - 1;
        field[at] = 0;
        while (at > 0) {
            at -= 1;
            field[at] = '0' + @as(u8, @intCast(rest % 8));
            rest /= 8;
        }
    }
};

fn hexOf(bytes: []const u8) [64]u8 {
    var digest: [32]u8 = undefined;
    Sha256.hash(bytes, &digest, .{});
    return std.fmt.bytesToHex(digest, .lower);
}

/// A layer as zstd packs it, with Huffman tables and sequences.
pub const zstd_layer = @embedFile("../golden/layer.tar.zst");

/// A frame of one raw block (RFC 8878, 3.1.1), for up to 128 KiB.
pub fn zstdFrame(bytes: []const u8, into: []u8) []u8 {
    // One segment, whose size has four bytes.
    into[0..5].* = "\x28\xb5\x2f\xfd\xa0".*;
    std.mem.writeInt(u32, into[5..9], @intCast(bytes.len), .little);
    std.mem.writeInt(u24, into[9..12], @intCast(bytes.len << 3 | 1), .little);
    @memcpy(into[12..][0..bytes.len], bytes);
    return into[0 .. 12 + bytes.len];
}

/// An archive as `docker save` makes it of layers that are not packed.
pub fn dockerArchive(into: []u8, layers: []const []const u8) []u8 {
    return dockerArchiveOf(into, layers, layers);
}

fn configOf(buffer: []u8, layers: []const []const u8) []const u8 {
    var writer: std.Io.Writer = .fixed(buffer);
    writer.writeAll(
        \\{"os":"linux","architecture":"amd64","rootfs":{"type":"layers","diff_ids":[
    ) catch unreachable;
    for (layers, 0..) |layer, index| writer.print("{s}\"sha256:{s}\"", .{
        if (index > 0) "," else "", hexOf(layer),
    }) catch unreachable;
    writer.writeAll("]}}") catch unreachable;
    return writer.buffered();
}

/// The same with `stored` in place of the layers: these, packed.
pub fn dockerArchiveOf(into: []u8, layers: []const []const u8, stored: []const []const u8) []u8 {
    var tar: TarBuilder = .{ .bytes = into };
    var buffers: [2][4096]u8 = undefined;
    const config = configOf(&buffers[0], layers);
    var list: std.Io.Writer = .fixed(&buffers[1]);
    const config_hex = hexOf(config);
    list.print("[{{\"Config\":\"{s}.json\",\"RepoTags\":[\"a:1\"],\"Layers\":[", .{
        config_hex,
    }) catch unreachable;
    for (0..layers.len) |index| list.print("{s}\"l{d}/layer.tar\"", .{
        if (index > 0) "," else "", index,
    }) catch unreachable;
    list.writeAll("]}]") catch unreachable;
    tar.add(config_hex ++ ".json", .{ .content = config });
    for (stored, 0..) |layer, index| {
        var name: [32]u8 = undefined;
        const path = std.mem.print(&name, "l{d}/layer.tar", .{index}) catch unreachable;
        tar.add(path, .{ .content = layer });
    }
    tar.add("manifest.json", .{ .content = list.buffered() });
    return tar.finish();
}

/// An OCI layout with these layers, stored as `stored`.
pub fn layoutArchive(into: []u8, layers: []const []const u8, stored: []const []const u8) []u8 {
    var tar: TarBuilder = .{ .bytes = into };
    var buffers: [3][4096]u8 = undefined;
    const config = configOf(&buffers[0], layers);
    var manifest: std.Io.Writer = .fixed(&buffers[1]);
    const image_type = "application/vnd.oci.image.";
    manifest.print("{{\"schemaVersion\":2,\"config\":{{\"mediaType\":\"" ++ image_type ++
        "config.v1+json\",\"digest\":\"sha256:{s}\",\"size\":{d}}},\"layers\":[", .{
        hexOf(config), config.len,
    }) catch unreachable;
    for (stored, 0..) |layer, index| {
        manifest.print("{s}{{\"mediaType\":\"" ++ image_type ++
            "layer.v1.tar\",\"digest\":\"sha256:{s}\",\"size\":{d}}}", .{
            if (index > 0) "," else "", hexOf(layer), layer.len,
        }) catch unreachable;
        putBlob(&tar, layer);
    }
    manifest.writeAll("]}") catch unreachable;
    putBlob(&tar, config);
    putBlob(&tar, manifest.buffered());
    var list: std.Io.Writer = .fixed(&buffers[2]);
    list.print("{{\"schemaVersion\":2,\"manifests\":[{{\"mediaType\":\"" ++ image_type ++
        "manifest.v1+json\",\"digest\":\"sha256:{s}\",\"size\":{d}}}]}}", .{
        hexOf(manifest.buffered()), manifest.buffered().len,
    }) catch unreachable;
    tar.add("index.json", .{ .content = list.buffered() });
    tar.add("oci-layout", .{ .content = "{\"imageLayoutVersion\":\"1.0.0\"}" });
    return tar.finish();
}

fn putBlob(tar: *TarBuilder, bytes: []const u8) void {
    tar.add("blobs/sha256/" ++ hexOf(bytes), .{ .content = bytes });
}
