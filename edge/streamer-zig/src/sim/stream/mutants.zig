//! The mutants of the stream's simulation: mistakes that are planted one at a time, each of which
//! must be found. Those that `agent.mutants` has too are changes of the agent's code. The others
//! change the state and the events of the real client and server where the mistake would show
//! (`device_side.zig`, `edge_mutants.zig`), or what a simulated disk or network does
//! (`edge_io.zig`).

const std = @import("std");

pub const Mutant = enum {
    none,
    // In the device.
    /// A read reuses the id of the one before, whose late fragments it takes for its own.
    request_number_used_again,
    /// A flush ends at once.
    flush_ends_at_once,
    /// A resumption takes writes in flight for done.
    resumption_forgets_writes,
    /// Timeouts stay as short as they were.
    timeout_never_doubles,
    /// A device requests more bytes than the edge allows.
    outstanding_unbounded,
    /// A write does not wait for an earlier one that it overlaps.
    overlapping_writes_together,
    /// A device forgets which order it has taken.
    order_taken_again,
    /// A device wants to be called at once, and has nothing to do.
    deadline_in_the_past,
    /// A device waits for its edge, however long that is silent.
    never_leaves,
    /// A device waits for a silent edge, however many others it knows.
    silent_edge_never_passed_over,
    /// A silent edge gets as long a turn as one that answers.
    silent_edge_keeps_its_turn,
    /// What the network reports of an edge is ignored.
    refusal_unheard,
    /// A device forgets that its writes are at one edge alone.
    bound_asks_others,
    /// A device reports to the next edge nothing that it has reported to the last one.
    ready_not_said_again,
    report_not_said_again,
    /// A device whose session is lost believes any order.
    lost_order_unproven,
    /// A session at another edge continues with the keys of the one before.
    keys_go_along,
    /// The size of a WELCOME that arrived is ignored.
    shown_size_unseen,
    /// A device keeps requesting large packets although none arrives.
    size_never_lowered,
    /// A device sends no PROBE to an edge that does not answer a write.
    narrow_path_unfound,
    // At the edge.
    ticket_of_writes_taken,
    probe_behind_disk,
    counter_restarts,
    large_welcome_left_out,
    fragment_at_wrong_index,
    last_fragment_left_out,
    /// A retransmitted READ is answered with the fragments beside those that it names.
    repeat_of_wrong_range,
    /// Every hundredth READ is answered from another version.
    another_version_read,
    another_device_read,
    /// The version below is read in place of what was written.
    base_read_after_write,
    cookie_unchecked,
    /// An address without a cookie gets more than it sent.
    answer_too_long,
    /// A session moves to whoever names it.
    source_unchecked,
    token_twice,
    /// A write is carried out again half a second later.
    write_carried_out_again,
    /// A request that is far behind, or has ended, is carried out.
    late_write_carried_out,
    welcome_before_sync,
    done_before_carried_out,
    done_before_it_is,
    write_kept_in_part,
    /// A write counts as whole before all its fragments have arrived.
    whole_without_a_fragment,
    discard_does_nothing,
    discard_ends_early,
    sync_left_out,
    lost_cache_replaced,
    ready_twice,
    deaf_to_the_running,
    drop_not_counted,
    /// The proof of a HELLO of version 3 does not cover the cookie, and nothing is remembered.
    proof_without_cookie,
    /// The edge forgets which HELLOs have opened sessions.
    recorded_hello_forgotten,
    /// Answers are packed for devices that have offered no codec.
    packed_unasked,
    /// A packed answer is sent as if it were plain.
    packed_without_flag,
    /// A packed answer has the piece beside the right one.
    answer_piece_of_another_place,
    /// What lies below a device's writes is packed in their place.
    base_packed_after_write,

    /// Parses a name of the command line, with dashes for underscores.
    pub fn parse(text: []const u8) ?Mutant {
        var buffer: [64]u8 = undefined;
        if (text.len > buffer.len) return null;
        const name = buffer[0..text.len];
        @memcpy(name, text);
        std.mem.replaceScalar(u8, name, '-', '_');
        return std.meta.stringToEnum(Mutant, name);
    }

    pub fn format(mutant: Mutant, writer: *std.Io.Writer) std.Io.Writer.Error!void {
        for (@tagName(mutant)) |byte| try writer.writeByte(if (byte == '_') '-' else byte);
    }
};
