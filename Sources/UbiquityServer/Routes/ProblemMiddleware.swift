// SPDX-License-Identifier: Apache-2.0

internal import Hummingbird
internal import Logging

/// Turns every error into problem details.
struct ProblemMiddleware: RouterMiddleware {
    typealias Context = ServerContext

    let edge: Edge

    func handle(
        _ request: Request, context: ServerContext,
        next: @concurrent (Request, ServerContext) async throws -> Response
    ) async throws -> Response {
        do { return try await next(request, context) } catch {
            let problem = Problem(error)
            edge.metrics.refused(problem)
            // Of the answers that ask to wait, only that of a sign-in does not name its limit.
            let isSignIn = problem.status == .tooManyRequests && problem.limit == nil
            if let limit = isSignIn ? .signInAttempts : problem.limit { edge.note(limit) }
            if problem.showsDamage {
                edge.metrics.foundUnreadable()
                context.logger.error(
                    "A request needs what cannot be read. `ubiquity doctor --data` counts it.",
                    metadata: ["route": "\(context.endpointPath ?? "")"])
            } else if problem.status.kind == .serverError, problem.limit == nil, problem.isLogged {
                context.logger.error(
                    "A request failed.",
                    metadata: ["route": "\(context.endpointPath ?? "")", "code": "\(problem.code)"])
            }
            return problem.response
        }
    }
}
