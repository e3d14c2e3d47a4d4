//! Mistakes that the simulation can put into the agent, to see that its checks find them. The
//! product is compiled without them: `has` is false there.

/// True only in the programs of the simulation.
pub const is_compiled_in: bool = @import("agent_options").has_mutants;

pub const Mutant = enum {
    /// A token opens a session as often as somebody shows it.
    token_twice,
    /// A boot in progress follows the policy to another version.
    version_follows_policy,
    /// A resumption begins a new boot.
    boot_on_resumption,
    /// The first READ of each session is dropped, also when it is retransmitted.
    deaf_to_reads,
    /// A retransmitted READ is counted as a new one.
    count_repeats,
    /// READY counts each time it arrives.
    ready_twice,
    /// What a device reports after its boot is over is dropped.
    deaf_to_the_running,
    /// An order is given to whatever boot its device is in.
    order_follows_device,
    /// A HELLO with a wrong proof ends the session of the boot that it names.
    wrong_proof_ends_session,
    /// An outcome by HTTP counts for a boot whose device has another address.
    outcome_of_any_address,
};

/// Per thread.
pub threadlocal var planted: ?Mutant = null;

pub inline fn has(comptime mutant: Mutant) bool {
    if (!is_compiled_in) return false;
    return planted == mutant;
}
