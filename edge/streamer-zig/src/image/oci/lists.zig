//! The lists of a container image, which say what its layers are: `manifest.json` of `docker save`,
//! and `index.json` of an OCI layout (OCI image specification 1.1: image-layout, image index, image
//! manifest, config). Digests of all lists are checked.

const std = @import("std");
const base = @import("base");
const Archive = @import("archive.zig");
const fault_module = @import("fault.zig");
const LayerStream = @import("layer_stream.zig");
const Allocator = std.mem.Allocator;
const Blob = LayerStream.Blob;
const Digest = LayerStream.Digest;
const Fault = fault_module.Fault;
const Sha256 = base.Sha256;
const Subject = fault_module.Subject;

const list_size_max = 4 << 20;
const config_size_max = 8 << 20;
/// JSON takes a multiple of its text.
const json_memory_max = 64 << 20;
/// overlayfs has at most 500.
pub const layers_max = 512;
/// Indexes below one another.
const index_depth_max = 4;

pub const Image = struct {
    layers: []const Blob,
    /// "linux/amd64"; "" if the image does not say.
    platform: []const u8,
};

const Platform = struct {
    os: []const u8 = "",
    architecture: []const u8 = "",
    variant: []const u8 = "",
};
const Descriptor = struct {
    mediaType: []const u8 = "",
    digest: []const u8,
    size: u64,
    platform: ?Platform = null,
};
const Index = struct { manifests: []const Descriptor };
const Manifest = struct { config: Descriptor, layers: []const Descriptor };
const Config = struct {
    os: []const u8 = "",
    architecture: []const u8 = "",
    variant: []const u8 = "",
    rootfs: struct { diff_ids: []const []const u8 },
};
const Saved = struct { Config: []const u8, Layers: []const []const u8 };

const Role = enum { index, manifest, config, layer };

const media_types = [_]struct { Role, []const u8 }{
    .{ .index, "application/vnd.oci.image.index.v1+json" },
    .{ .index, "application/vnd.docker.distribution.manifest.list.v2+json" },
    .{ .manifest, "application/vnd.oci.image.manifest.v1+json" },
    .{ .manifest, "application/vnd.docker.distribution.manifest.v2+json" },
    .{ .config, "application/vnd.oci.image.config.v1+json" },
    .{ .config, "application/vnd.docker.container.image.v1+json" },
    .{ .layer, "application/vnd.oci.image.layer.v1.tar" },
    .{ .layer, "application/vnd.oci.image.layer.v1.tar+gzip" },
    .{ .layer, "application/vnd.oci.image.layer.v1.tar+zstd" },
    .{ .layer, "application/vnd.oci.image.layer.nondistributable.v1.tar" },
    .{ .layer, "application/vnd.oci.image.layer.nondistributable.v1.tar+gzip" },
    .{ .layer, "application/vnd.oci.image.layer.nondistributable.v1.tar+zstd" },
    .{ .layer, "application/vnd.docker.image.rootfs.diff.tar" },
    .{ .layer, "application/vnd.docker.image.rootfs.diff.tar.gzip" },
    .{ .layer, "application/vnd.docker.image.rootfs.diff.tar.zstd" },
};

pub const Lists = @This();

archive: *const Archive,
arena: Allocator,
/// As `--platform` gives it; null: the only one.
wanted: ?[]const u8,
subject: *Subject,

/// Finds the layers, from the lowest on. After a fault, `subject` says what it is about.
pub fn read(lists: *const Lists) Fault!Image {
    if (try lists.archive.find("oci-layout") != null) {
        if (try lists.archive.find("index.json")) |member| {
            lists.subject.set("index.json", .{});
            const text = try lists.archive.read(&member, list_size_max);
            return lists.ofIndex(text, 0);
        }
    }
    const member = try lists.archive.find("manifest.json") orelse return error.NotAContainer;
    return lists.ofSaved(&member);
}

fn parse(lists: *const Lists, comptime T: type, text: []const u8) Fault!T {
    const memory = try lists.arena.alloc(u8, @min(json_memory_max, 4096 + 32 * text.len));
    var fixed: std.heap.FixedBufferAllocator = .init(memory);
    return std.json.parseFromSliceLeaky(T, fixed.allocator(), text, .{
        .ignore_unknown_fields = true,
        .allocate = .alloc_if_needed,
        .max_value_len = list_size_max,
    }) catch |err| switch (err) {
        error.OutOfMemory => error.ListTooLarge,
        else => error.ListInvalid,
    };
}

fn ofIndex(lists: *const Lists, text: []const u8, depth: u32) Fault!Image {
    const index = try lists.parse(Index, text);
    const chosen = try lists.choose(index.manifests);
    const inner = try lists.readBlob(chosen, list_size_max);
    if (roleOf(chosen.mediaType) == .manifest) return lists.ofManifest(inner);
    if (roleOf(chosen.mediaType) != .index) return lists.unknown(chosen.mediaType);
    if (depth == index_depth_max) return error.ListInvalid;
    return lists.ofIndex(inner, depth + 1);
}

/// Leaves out attestations, whose platform is unknown/unknown.
fn choose(lists: *const Lists, all: []const Descriptor) Fault!*const Descriptor {
    var chosen: ?*const Descriptor = null;
    var names: std.ArrayList(u8) = .empty;
    var is_ambiguous = false;
    for (all) |*one| {
        if (one.platform) |*platform| {
            if (std.mem.eql(u8, platform.os, "unknown")) continue;
            const name = try nameOf(lists.arena, platform);
            if (names.items.len < 512)
                try names.print(lists.arena, "{s}{s}", .{
                    if (names.items.len > 0) ", " else "", name,
                });
            if (lists.wanted) |wanted| if (!isPlatform(name, wanted)) continue;
        }
        if (chosen != null) is_ambiguous = true else chosen = one;
    }
    lists.subject.set("{s}", .{names.items});
    if (is_ambiguous) {
        const has_choice = lists.wanted == null and names.items.len > 0;
        return if (has_choice) error.PlatformsSeveral else error.ImagesSeveral;
    }
    return chosen orelse if (all.len == 0) error.ListInvalid else error.PlatformMissing;
}

/// linux/arm64 also chooses linux/arm64/v8.
fn isPlatform(name: []const u8, wanted: []const u8) bool {
    const rest = std.mem.cutPrefix(u8, name, wanted) orelse return false;
    return rest.len == 0 or rest[0] == '/';
}

fn nameOf(arena: Allocator, platform: *const Platform) Fault![]const u8 {
    const has_variant = platform.variant.len > 0;
    return std.mem.concat(arena, u8, &.{
        platform.os,                  "/",              platform.architecture,
        if (has_variant) "/" else "", platform.variant,
    });
}

fn ofManifest(lists: *const Lists, text: []const u8) Fault!Image {
    const manifest = try lists.parse(Manifest, text);
    try lists.expect(.config, manifest.config.mediaType);
    const config = try lists.ofConfig(try lists.readBlob(&manifest.config, config_size_max));
    const diff_ids = config.rootfs.diff_ids;
    if (manifest.layers.len != diff_ids.len) return error.ListInvalid;
    const layers = try lists.arena.alloc(Blob, diff_ids.len);
    for (layers, manifest.layers, diff_ids, 1..) |*layer, *descriptor, diff_id, number| {
        lists.subject.layer = @intCast(number);
        try lists.expect(.layer, descriptor.mediaType);
        const member = try lists.findBlob(descriptor);
        layer.* = .{
            .source = member.source,
            .first = member.first,
            .size = member.size,
            .digest = try digestOf(descriptor.digest),
            .diff_id = try digestOf(diff_id),
        };
    }
    lists.subject.* = .{};
    return .{ .layers = layers, .platform = try platformOf(lists.arena, &config) };
}

fn ofConfig(lists: *const Lists, text: []const u8) Fault!Config {
    const config = try lists.parse(Config, text);
    if (config.rootfs.diff_ids.len > layers_max) return error.LayersTooMany;
    if (config.rootfs.diff_ids.len == 0) return error.ListInvalid;
    return config;
}

fn platformOf(arena: Allocator, config: *const Config) Fault![]const u8 {
    if (config.os.len == 0) return "";
    return nameOf(arena, &.{
        .os = config.os,
        .architecture = config.architecture,
        .variant = config.variant,
    });
}

fn ofSaved(lists: *const Lists, member: *const Archive.Member) Fault!Image {
    lists.subject.set("manifest.json", .{});
    const text = try lists.archive.read(member, list_size_max);
    const all = try lists.parse([]const Saved, text);
    if (all.len == 0) return error.ListInvalid;
    if (all.len > 1) return error.ImagesSeveral;
    const saved = &all[0];
    lists.subject.set("{s}", .{saved.Config});
    const config_member = try lists.archive.find(saved.Config) orelse return error.MemberMissing;
    const config_text = try lists.archive.read(&config_member, config_size_max);
    // Its name is its digest.
    const name = std.fs.path.basename(saved.Config);
    if (parseHex(std.mem.cutSuffix(u8, name, ".json") orelse name)) |digest|
        try checkDigest(config_text, digest);
    const config = try lists.ofConfig(config_text);
    const platform = try platformOf(lists.arena, &config);
    if (lists.wanted) |wanted| if (!isPlatform(platform, wanted)) {
        lists.subject.set("{s}", .{platform});
        return error.PlatformMissing;
    };
    const diff_ids = config.rootfs.diff_ids;
    if (saved.Layers.len != diff_ids.len) return error.ListInvalid;
    const layers = try lists.arena.alloc(Blob, diff_ids.len);
    for (layers, saved.Layers, diff_ids) |*layer, path, diff_id| {
        lists.subject.set("{s}", .{path});
        const found = try lists.archive.find(path) orelse return error.MemberMissing;
        layer.* = .{
            .source = found.source,
            .first = found.first,
            .size = found.size,
            .digest = null,
            .diff_id = try digestOf(diff_id),
        };
    }
    lists.subject.* = .{};
    return .{ .layers = layers, .platform = platform };
}

fn roleOf(media_type: []const u8) ?Role {
    for (media_types) |known| if (std.mem.eql(u8, known[1], media_type)) return known[0];
    return null;
}

fn expect(lists: *const Lists, role: Role, media_type: []const u8) Fault!void {
    if (roleOf(media_type) != role) return lists.unknown(media_type);
}

fn unknown(lists: *const Lists, media_type: []const u8) Fault {
    lists.subject.set("{s}", .{media_type});
    return error.MediaTypeUnknown;
}

fn findBlob(lists: *const Lists, descriptor: *const Descriptor) Fault!Archive.Member {
    lists.subject.set("{s}", .{descriptor.digest});
    const hex = std.fmt.bytesToHex(try digestOf(descriptor.digest), .lower);
    const path = "blobs/sha256/" ++ hex;
    const member = try lists.archive.find(path) orelse return error.MemberMissing;
    return if (member.size == descriptor.size) member else error.SizeWrong;
}

fn readBlob(
    lists: *const Lists,
    descriptor: *const Descriptor,
    size_max: usize,
) Fault![]const u8 {
    const member = try lists.findBlob(descriptor);
    const text = try lists.archive.read(&member, size_max);
    try checkDigest(text, try digestOf(descriptor.digest));
    return text;
}

fn checkDigest(text: []const u8, expected: Digest) Fault!void {
    var found: Digest = undefined;
    Sha256.hash(text, &found, .{});
    if (!std.mem.eql(u8, &found, &expected)) return error.DigestWrong;
}

fn digestOf(text: []const u8) Fault!Digest {
    const hex = std.mem.cutPrefix(u8, text, "sha256:") orelse return error.DigestUnknown;
    return parseHex(hex) orelse error.DigestUnknown;
}

fn parseHex(hex: []const u8) ?Digest {
    if (hex.len != 64) return null;
    var digest: Digest = undefined;
    _ = std.fmt.hexToBytes(&digest, hex) catch return null;
    return digest;
}
