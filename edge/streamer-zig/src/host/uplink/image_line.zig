//! The connection over which `image_fetch.zig` asks for parts of an image: signed to the control
//! plane for an upload, or to the server of a URL, with its redirects. It connects to no address
//! that the edge may not fetch from.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const KeyRotation = @import("key_rotation.zig");
const Transport = @import("transport.zig");
const UplinkClient = @import("client.zig");
const Failure = @import("transport_failure.zig").Failure;
const Io = std.Io;
const ImportUrl = core.uplink.ImportUrl;
const Plan = core.uplink.ImageFetch;

pub const Line = @This();

const request_timeout_ms = 20_000;

gpa: std.mem.Allocator,
options: *const Options,
/// For an upload.
client: UplinkClient,
/// For a URL: where it leads by now.
url: ?ImportUrl,
redirects: u32 = 0,
/// What `url` points into, and where the next one is written.
texts: [2][ImportUrl.size_max]u8,

pub const Asked = struct { answer: Plan.Answer, body: []const u8 };

pub const Options = struct {
    io: Io,
    client_options: UplinkClient.Options,
    rotation: *KeyRotation,
    /// Becomes readable when the thread ends.
    wake_fd: i32,
    /// Outlives the fetch.
    store_path: []const u8,
    job_id: base.Uuid,
    /// Names the file: that of the upload, or of the job.
    file_id: base.Uuid,
    source: core.uplink.import_source.Source,
    /// Where an edge may fetch from.
    sources: *const core.uplink.ImportUrl.Sources,
    /// Known of an upload.
    size: ?u64,
    sha256: ?[32]u8,
};

/// Keeps its place: the URL points into it.
pub fn init(
    line: *Line,
    gpa: std.mem.Allocator,
    options: *const Options,
) ImportUrl.Error!void {
    line.* = .{
        .gpa = gpa,
        .options = options,
        .client = .init(gpa, options.io, options.client_options),
        .url = null,
        .texts = undefined,
    };
    const text = switch (options.source) {
        .upload => return,
        .url => |text| text,
    };
    errdefer line.client.deinit();
    @memcpy(line.texts[0][0..text.len], text);
    line.url = try ImportUrl.parse(line.texts[0][0..text.len]);
    line.leadTo(line.url.?);
}

pub fn deinit(line: *Line) void {
    line.client.deinit();
}

pub fn transport(line: *const Line) *const Transport {
    return &line.client.transport;
}

/// For sentences.
pub fn name(line: *const Line) []const u8 {
    const url = if (line.url) |*url| url else return "The control plane";
    return url.host_header;
}

fn leadTo(line: *Line, url: ImportUrl) void {
    const options = line.options;
    line.client.transport.deinit();
    line.client.transport = .init(line.gpa, options.io, .{
        .url = .{ .is_tls = url.is_tls, .host = url.host, .port = url.port, .prefix = "" },
        .ca_file = options.client_options.transport.ca_file,
        .sources = options.sources,
    });
}

pub fn ask(
    line: *Line,
    range: Plan.Range,
    validator: []const u8,
    buffer: []u8,
) error{NoAnswer}!Asked {
    const answer = (if (line.url) |*url|
        line.askUrl(url, range, validator, buffer)
    else
        line.askUpload(range, buffer)) catch |err| switch (err) {
        error.NoAnswer => return error.NoAnswer,
        // More than was asked for: the whole file.
        error.AnswerTooLarge => return .{ .answer = .{ .status = 200 }, .body = "" },
    };
    const part = &line.client.transport.part;
    return .{
        .answer = .{
            .status = answer.status,
            .body_size = answer.body.len,
            .content_range = part.content_range.constSlice(),
            .validator = Plan.validatorOf(
                part.entity_tag.constSlice(),
                part.last_modified.constSlice(),
            ),
            .retry_after_s = answer.retry_after_s,
        },
        .body = answer.body,
    };
}

fn askUpload(
    line: *Line,
    range: Plan.Range,
    buffer: []u8,
) UplinkClient.RequestError!UplinkClient.Answer {
    const options = line.options;
    var path: [64]u8 = undefined;
    line.client.key = options.rotation.key();
    return line.client.requestEncoded(
        .GET,
        std.mem.print(&path, "/edge/v1/uploads/{f}", .{options.file_id}) catch unreachable,
        .{ .bytes = "", .range = .{ .first = range.first, .last = range.last } },
        request_timeout_ms,
        buffer,
    );
}

fn askUrl(
    line: *Line,
    url: *const ImportUrl,
    range: Plan.Range,
    validator: []const u8,
    buffer: []u8,
) UplinkClient.RequestError!UplinkClient.Answer {
    var range_text: [64]u8 = undefined;
    var target: [ImportUrl.size_max + 1]u8 = undefined;
    const slash: []const u8 = if (std.mem.startsWith(u8, url.target, "/")) "" else "/";
    const headers = [_]std.http.Header{
        .{ .name = "range", .value = std.mem.print(
            &range_text,
            "bytes={d}-{d}",
            .{ range.first, range.last },
        ) catch unreachable },
        .{ .name = "accept-encoding", .value = "identity" },
        .{ .name = "if-range", .value = validator },
    };
    return line.client.exchangeWithin(&.{
        .method = "GET",
        .target = std.mem.print(&target, "{s}{s}", .{ slash, url.target }) catch unreachable,
        .body = null,
        // Only what follows the first part is of a content that is known.
        .headers = headers[0 .. headers.len - @intFromBool(validator.len == 0)],
    }, request_timeout_ms, buffer);
}

pub const RedirectError = ImportUrl.Error || error{ LosesTls, TooMany };

/// Follows the redirect of the last answer.
pub fn redirect(line: *Line) RedirectError!void {
    if (line.redirects == ImportUrl.redirects_max) return error.TooMany;
    line.redirects += 1;
    const location = line.client.transport.part.location;
    const text = &line.texts[line.redirects % 2];
    const next = try line.url.?.follow(location.constSlice(), text);
    line.url = next;
    line.leadTo(next);
}

/// Why the last request cannot be answered, also by the next one; null: it may be.
pub fn finalProblem(line: *const Line, plan: *const Plan) ?Failure {
    if (line.url == null) return null;
    const failure = line.client.failure();
    return switch (failure) {
        .address_refused => failure,
        .name_unknown,
        .nothing_listens,
        .no_route,
        .authorities_unreadable,
        .certificate_unknown,
        .certificate_expired,
        .certificate_not_yet_valid,
        .certificate_of_another,
        .tls_failed,
        .tls_malformed,
        .not_http,
        // Later, the server may be away for a moment.
        => if (plan.held == 0) failure else null,
        else => null,
    };
}
